//! `steadfast doctor`: what works of a connection, and what does not.

use clap::Args;
use serde_json::{Value, json};
use steadfast_couchbase::diagnostics::{Checkup, Finding, Outcome};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::connection::{Connection, senseless};
use crate::exit::Ended;
use crate::output::{BAD, FAINT, GOOD, line, styled};

/// Connect as a client would, and say step by step what works and what does not
///
/// Looks up the name, connects, makes TLS, authenticates, opens the bucket, connects to
/// every node, asks for a document of the collection and pings every service. What does
/// not work comes with what to do about it. Nothing is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast doctor couchbase://localhost --user app
  steadfast doctor couchbases://db.example.com/travel/inventory/users --user app --ca ca.pem

Exit status:
  0  everything that was tried works
  1  something does not
  2  the command line makes no sense")]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let connection = arguments.connection;
    let address = &connection.address;
    let (credentials, options) = (connection.credentials()?, connection.options()?);
    let string = address.string.to_string();
    let mut checkup = Checkup::new(&string, credentials, options).map_err(senseless)?;
    if let Some(scope) = &address.scope {
        checkup = checkup.scope(scope);
    }
    if let Some(collection) = &address.collection {
        checkup = checkup.collection(collection);
    }
    let json = connection.json;
    let tell = |finding: &Finding| {
        if json {
            line(as_json(finding));
        } else {
            print(finding);
        }
    };
    let findings = checkup.run(tell).await.map_err(senseless)?;
    if findings
        .iter()
        .any(|finding| finding.outcome == Outcome::Fails)
    {
        return Err(Ended::FAILED.into());
    }
    Ok(())
}

fn print(finding: &Finding) {
    let (mark, colour) = match finding.outcome {
        Outcome::Works => ("✔", GOOD),
        Outcome::Fails => ("✘", BAD),
        Outcome::NotTried => ("–", FAINT),
    };
    let text = match certificate(finding) {
        Some(certificate) => format!("{}, {}", finding.text, certificate.describe()),
        None => finding.text.clone(),
    };
    let (mark, step) = (styled(colour, mark), finding.step);
    line(format_args!("{mark} {step:<13} {text}"));
    if let Some(advice) = &finding.advice {
        line(format_args!("{:15} → {advice}", ""));
    }
}

fn as_json(finding: &Finding) -> Value {
    let mut json = json!(finding);
    if let Some(certificate) = certificate(finding) {
        json["certificate"] = json!({
            "subject": certificate.subject,
            "issuer": certificate.issuer,
            "not_after": certificate.until,
        });
    }
    json
}

/// What people want to know of a certificate.
struct Certificate {
    subject: String,
    issuer: String,
    until: String,
    self_signed: bool,
}

impl Certificate {
    fn describe(&self) -> String {
        let issuer = match self.self_signed {
            true => "issued by itself".to_owned(),
            false => format!("issued by {}", self.issuer),
        };
        format!(
            "certificate of {}, valid until {}, {issuer}",
            self.subject, self.until
        )
    }
}

fn certificate(finding: &Finding) -> Option<Certificate> {
    let der = finding.certificate.as_ref()?;
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(Certificate {
        subject: certificate.subject().to_string(),
        issuer: certificate.issuer().to_string(),
        until: certificate
            .validity()
            .not_after
            .to_datetime()
            .date()
            .to_string(),
        self_signed: certificate.subject() == certificate.issuer(),
    })
}
