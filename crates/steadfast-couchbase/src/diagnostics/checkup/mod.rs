//! What works of a connection and what does not, step by step.
//!
//! "It does not connect" has a dozen causes, and a client in production tells them
//! apart only as far as it must to decide about a retry. A checkup goes the way
//! that a client goes, with the same parts, and stops at each step to say what it
//! found: the name, the port, TLS, the credentials, the bucket, and from there on
//! with a client of its own the nodes, the collection and every service.

mod admission;
mod reach;
mod service;

use serde::Serialize;

use crate::config_error::ConfigError;
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::dns::{self, Seed, srv_name};
use crate::options::ClusterOptions;

/// A look at a connection; [`run`](Self::run) takes it.
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

/// What was found at one step.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The step: `name`, `connect`, `TLS`, `authenticate`, `bucket`, `nodes`,
    /// `scope`, `collection`, `read`, or the name of a service.
    pub step: &'static str,
    /// How it went.
    pub outcome: CheckResult,
    /// What was found, in a line.
    pub text: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The certificate that the server showed, as DER. At the step `TLS` only.
    #[serde(skip)]
    pub certificate: Option<Vec<u8>>,
}

/// How a step went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// It works.
    Works,
    /// It does not.
    Fails,
    /// It was not tried: nobody asked for it, or an earlier step failed.
    NotTried,
}

impl Checkup {
    /// Looks at a connection with these. What the connection string says counts
    /// more than the options. Nothing is dialled yet.
    ///
    /// # Errors
    /// If one of them makes no sense.
    pub fn new(
        connection_string: &str,
        credentials: Credentials,
        mut options: ClusterOptions,
    ) -> Result<Self, ConfigError> {
        let string = ConnectionString::parse(connection_string)?;
        string.apply_to(&mut options);
        options.validate()?;
        credentials.validate()?;
        Ok(Self {
            string,
            credentials,
            options,
            scope: None,
            collection: None,
        })
    }

    /// Looks at this scope, too.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }

    /// Looks at this collection of the scope, too.
    #[must_use]
    pub fn collection(mut self, collection: impl Into<String>) -> Self {
        self.collection = Some(collection.into());
        self
    }

    /// Takes all steps, and tells each finding as soon as it is there.
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If a file with certificates cannot be read.
    pub async fn run(&self, mut tell: impl FnMut(&Finding)) -> Result<Vec<Finding>, ConfigError> {
        let mut findings = Vec::new();
        let mut note = |finding: Finding| {
            tell(&finding);
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
        let (seed, socket) = match reach::connect(&seeds, &self.options).await {
            Ok((seed, socket, finding)) => {
                note(finding);
                (seed, socket)
            }
            Err(finding) => {
                note(finding);
                self.rest(&["TLS", "authenticate", "bucket"], note);
                return Ok(findings);
            }
        };
        let (finding, io) = reach::secure(self, &seed, socket).await?;
        note(finding);
        let Some(io) = io else {
            self.rest(&["authenticate", "bucket"], note);
            return Ok(findings);
        };
        if !note(admission::authenticate(self, &seed, io).await) {
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
    fn is_srv(&self, seeds: &[Seed]) -> bool {
        let written = self.string.addresses();
        srv_name(&self.string).is_some()
            && !written.eq(seeds.iter().map(|seed| (seed.host.as_str(), seed.port)))
    }

    /// The steps that were not tried.
    fn rest(&self, steps: &[&'static str], mut note: impl FnMut(Finding) -> bool) {
        for step in steps {
            if *step != "TLS" || self.string.is_tls() {
                note(Finding::not_tried(step, "not tried"));
            }
        }
    }
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
