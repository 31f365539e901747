//! Checks a connection step by step, and reports which step fails.
//!
//! "It does not connect" has a dozen causes. A client in production distinguishes
//! them only as far as its retries need it. A checkup takes the same steps as a
//! client and reports each: name, port, TLS, credentials and bucket; then, with a
//! client of its own, nodes, collection and every service.

mod admission;
mod capella;
mod reach;
mod service;

use futures_util::future::{join_all, try_join_all};
use serde::Serialize;

use crate::config_error::ConfigError;
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::dns::{self, srv_name};
use crate::options::ClusterOptions;
use crate::topology::Address;

/// A check of a connection; [`run`](Self::run) makes it.
///
/// ```
/// use steadfast_cluster::{BucketSettings, TestCluster};
/// use steadfast_couchbase::diagnostics::{CheckResult, Checkup};
/// use steadfast_couchbase::{ClusterOptions, Credentials};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = TestCluster::builder().bucket(BucketSettings::new("travel").replicas(0)).user("app", "secret").start().await?;
/// # let string = format!("{}/travel", server.connection_string());
/// let credentials = Credentials::password("app", "not the password");
/// let checkup = Checkup::new(&string, credentials, ClusterOptions::new())?;
/// let findings = checkup.run(|finding| println!("{}: {}", finding.step, finding.text)).await?;
///
/// let failed = findings.iter().find(|finding| finding.outcome == CheckResult::Fails);
/// assert_eq!(failed.map(|finding| finding.step), Some("authenticate"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Checkup {
    string: ConnectionString,
    credentials: Credentials,
    options: ClusterOptions,
    scope: Option<String>,
    collection: Option<String>,
}

/// The finding of one step.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The step: `name`, `connect`, `TLS`, `authenticate`, `bucket`, `nodes`,
    /// `scope`, `collection`, `read`, or the name of a service.
    pub step: &'static str,
    /// The result.
    pub outcome: CheckResult,
    /// The finding, on one line.
    pub text: String,
    /// What to do about a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The certificate that the server showed, as DER. At the step `TLS` only.
    #[serde(skip)]
    pub certificate: Option<Vec<u8>>,
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// It works.
    Works,
    /// It does not.
    Fails,
    /// It was not tried: it was not asked for, or an earlier step failed.
    NotTried,
}

impl Checkup {
    /// Prepares a check. The connection string takes precedence over the options.
    /// Nothing is dialled yet.
    ///
    /// # Errors
    /// If the connection string, the credentials or an option is invalid.
    pub fn new(
        connection_string: &str,
        credentials: Credentials,
        mut options: ClusterOptions,
    ) -> Result<Self, ConfigError> {
        let string = ConnectionString::parse_with(connection_string, &mut options)?;
        credentials.validate()?;
        Ok(Self {
            string,
            credentials,
            options,
            scope: None,
            collection: None,
        })
    }

    /// Checks this scope, too.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Checks this collection of the scope, too.
    #[must_use]
    pub fn collection(mut self, collection: impl Into<String>) -> Self {
        self.collection = Some(collection.into());
        self
    }

    /// Takes all steps, and reports each finding as soon as it is known.
    ///
    /// Cancel-safe: dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If a file with certificates cannot be read.
    pub async fn run(&self, mut report: impl FnMut(&Finding)) -> Result<Vec<Finding>, ConfigError> {
        let mut findings = Vec::new();
        let mut note = |finding: Finding| {
            let finding = self.add_capella(finding);
            report(&finding);
            let works = finding.outcome == CheckResult::Works;
            findings.push(finding);
            works
        };
        let seeds = dns::seeds(&self.string, &self.options, &dns::SystemDns).await;
        let limit = self.options.connect_timeout;
        if !note(reach::name(&seeds, self.is_srv(&seeds), limit).await) {
            self.rest(&["connect", "TLS", "authenticate", "bucket"], note);
            return Ok(findings);
        }
        let sockets = match reach::connect(&seeds, &self.options).await {
            Ok((sockets, finding)) => {
                note(finding);
                sockets
            }
            Err(finding) => {
                note(finding);
                self.rest(&["TLS", "authenticate", "bucket"], note);
                return Ok(findings);
            }
        };
        // A seed can accept and stay silent. A client needs one that works, so all are tried.
        let secured = sockets.into_iter().map(|(seed, socket)| async {
            let (finding, io) = reach::secure(self, &seed, socket).await?;
            Ok((seed, finding, io))
        });
        let mut each = Vec::new();
        let mut secure = Vec::new();
        for (seed, finding, io) in try_join_all(secured).await? {
            each.push((seed.clone(), finding));
            secure.extend(io.map(|io| (seed, io)));
        }
        note(of_seeds(each).1);
        if secure.is_empty() {
            self.rest(&["authenticate", "bucket"], note);
            return Ok(findings);
        }
        let entered = secure.into_iter().map(|(seed, io)| async {
            let finding = admission::authenticate(self, &seed, io).await;
            (seed, finding)
        });
        let (seed, finding) = of_seeds(join_all(entered).await);
        if !note(finding) {
            self.rest(&["bucket"], note);
            return Ok(findings);
        }
        let opened = note(admission::bucket(self, &seed).await?);
        for finding in service::examine(self, opened).await? {
            note(finding);
        }
        Ok(findings)
    }

    /// Whether the hosts come from a DNS SRV record.
    fn is_srv(&self, seeds: &[Address]) -> bool {
        let written = self.string.addresses();
        srv_name(&self.string).is_some()
            && !written.eq(seeds.iter().map(|seed| (&*seed.host, seed.port)))
    }

    /// Reports the steps that were not tried.
    fn rest(&self, steps: &[&'static str], mut note: impl FnMut(Finding) -> bool) {
        for step in steps {
            if *step != "TLS" || self.string.is_tls() {
                note(Finding::not_tried(step, "not tried"));
            }
        }
    }
}

/// Makes one finding for all seeds: that of the first seed that does not fail,
/// because a client needs no more, and names the others. Returns its seed, too.
fn of_seeds(mut each: Vec<(Address, Finding)>) -> (Address, Finding) {
    let failed = |finding: &Finding| finding.outcome == CheckResult::Fails;
    let best = each.iter().position(|(_, finding)| !failed(finding));
    let (seed, mut finding) = each.remove(best.unwrap_or(0));
    let others = each.iter().filter(|(_, other)| failed(other));
    let others = others.map(|(seed, other)| format!("{seed}: {}", other.text));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        let (text, others) = (&finding.text, others.join("; "));
        finding.text = match best {
            Some(_) => format!("{seed}: {text}; not {others}"),
            None => format!("{seed}: {text}; {others}"),
        };
    }
    (seed, finding)
}

impl Finding {
    fn works(step: &'static str, text: impl Into<String>) -> Self {
        Self::new(step, CheckResult::Works, text.into(), None)
    }

    fn fails(step: &'static str, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(step, CheckResult::Fails, text.into(), Some(advice.into()))
    }

    fn not_tried(step: &'static str, why: impl Into<String>) -> Self {
        Self::new(step, CheckResult::NotTried, why.into(), None)
    }

    fn new(step: &'static str, outcome: CheckResult, text: String, advice: Option<String>) -> Self {
        Self {
            step,
            outcome,
            text,
            advice,
            certificate: None,
        }
    }
}
