//! Why a command cannot be audited.

use std::io;
use std::time::Duration;

use super::AuditSettings;
use crate::command::{ClientEnd, ExitCause};
use crate::report::show;

/// Why a command cannot be audited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// There is no command.
    #[error("there is no command to audit: give it after --")]
    NoCommand,
    /// The command cannot be started.
    #[error("cannot run {program}: {source}")]
    CannotStart {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The command sent nothing to a server without faults.
    #[error("the command sent no request to {url}: {how}{advice}{output}")]
    NoRequest {
        /// The address that it was given.
        url: String,
        /// How the command ended.
        how: String,
        /// What to do.
        advice: &'static str,
        /// What it printed.
        output: String,
    },
    /// The command had its response and did not end.
    #[error(
        "the command did not end within {} after a successful response, and was stopped; \
         the audit needs a command that sends one request and exits", show(*after)
    )]
    DoesNotEnd {
        /// When it was stopped.
        after: Duration,
    },
    /// The command sends several requests, which look like retries.
    #[error(
        "the command sent {number} requests to a server without faults; the audit cannot tell \
         them from retries, and needs a command that sends one request"
    )]
    ManyRequests {
        /// How many.
        number: usize,
    },
    /// No case has such a name.
    #[error("no case has a name with {only}; the names are those of the report with --all")]
    NoCase {
        /// The parts of names.
        only: String,
    },
    /// A driver of an SDK failed.
    #[error("the driver {problem}{output}")]
    Driver {
        /// What it did.
        problem: String,
        /// What it printed.
        output: String,
    },
    /// The cluster cannot run here.
    #[error("cannot run the cluster: {0}")]
    Cluster(#[source] steadfast_cluster::ClusterError),
    /// The server cannot run here.
    #[error("cannot start a server on loopback: {0}")]
    Server(#[source] io::Error),
}

impl AuditError {
    pub(crate) fn no_request(end: &ClientEnd, url: &str, settings: &AuditSettings) -> Self {
        let stopped = end.cause == ExitCause::Stopped;
        let names_url = settings
            .command
            .iter()
            .any(|word| word.to_string_lossy().contains("{url}"));
        Self::NoRequest {
            url: url.to_owned(),
            how: match stopped {
                true => format!("it was stopped after {}", show(end.after)),
                false => end.to_string(),
            },
            advice: match (stopped, end.left_processes, names_url) {
                (true, ..) => "; if it needs longer to start, raise --start-limit",
                (_, true, _) => {
                    "; it left a process running, which was stopped: the command must not end before its request does"
                }
                (.., false) => "; write {url} where the address belongs, or read AUDIT_URL",
                _ => "",
            },
            output: match end.stderr.as_str() {
                "" => "; it printed no error".to_owned(),
                text => format!("; it printed:\n{text}"),
            },
        }
    }
}
