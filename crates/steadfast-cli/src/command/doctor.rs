//! `steadfast doctor`: checks a connection step by step.

use clap::Args;
use serde_json::{Value, json};
use steadfast_couchbase::diagnostics::{CheckResult, Checkup, Finding};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::connect::ConnectArgs;
use crate::exit::{AlreadyReported, usage};
use crate::output::{BAD, FAINT, GOOD, line, styled, wrapped_on_terminals};

/// Check a connection step by step, with advice on every step that fails
///
/// Resolves the host name, connects, negotiates TLS, authenticates, opens the bucket,
/// connects to every node, reads a document of the collection, and pings every service.
/// Writes nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast doctor couchbase://localhost --user app
  steadfast doctor couchbases://db.example.com/travel/inventory/users --user app --ca ca.pem

Exit status:
  0  every step that was tried works
  1  a step fails
  2  the command line is invalid, or names a file that cannot be read")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let connect = args.connect;
    let address = &connect.address;
    let (credentials, options) = (connect.credentials().await?, connect.options()?);
    let string = address.string.to_string();
    let mut checkup = Checkup::new(&string, credentials, options).map_err(usage)?;
    if let Some(scope) = &address.scope {
        checkup = checkup.scope(scope);
    }
    if let Some(collection) = &address.collection {
        checkup = checkup.collection(collection);
    }
    let report = |finding: &Finding| match connect.json {
        true => line(to_json(finding)),
        false => print(finding),
    };
    let findings = checkup.run(report).await.map_err(usage)?;
    if findings
        .iter()
        .any(|finding| finding.outcome == CheckResult::Fails)
    {
        return Err(AlreadyReported::FAILED.into());
    }
    Ok(())
}

fn print(finding: &Finding) {
    let (mark, colour) = match finding.outcome {
        CheckResult::Works => ("✔", GOOD),
        CheckResult::Fails => ("✘", BAD),
        CheckResult::NotTried => ("–", FAINT),
    };
    let text = match certificate(finding) {
        Some(certificate) => format!("{}, {}", finding.text, certificate.describe()),
        None => finding.text.clone(),
    };
    let (mark, step) = (styled(colour, mark), finding.step);
    line(format_args!(
        "{mark} {step:<13} {}",
        wrapped_on_terminals(&text, 16)
    ));
    if let Some(advice) = &finding.advice {
        line(format_args!(
            "{:16}→ {}",
            "",
            wrapped_on_terminals(advice, 18)
        ));
    }
}

fn to_json(finding: &Finding) -> Value {
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

/// The fields of a certificate that help to diagnose a connection.
struct CertificateSummary {
    subject: String,
    issuer: String,
    until: String,
    self_signed: bool,
}

impl CertificateSummary {
    fn describe(&self) -> String {
        let issuer = match self.self_signed {
            true => "self-signed".to_owned(),
            false => format!("issued by {}", self.issuer),
        };
        format!(
            "certificate of {}, valid until {}, {issuer}",
            self.subject, self.until
        )
    }
}

fn certificate(finding: &Finding) -> Option<CertificateSummary> {
    let der = finding.certificate.as_ref()?;
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(CertificateSummary {
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
