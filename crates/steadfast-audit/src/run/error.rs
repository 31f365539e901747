//! Why a command cannot be audited.

use std::io;
use std::time::Duration;

use super::AuditSettings;
use crate::command::{ClientEnd, ExitCause};
use crate::report::show;
use crate::server::ScriptedServer;

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
    #[error("the command sent no request to {url}: {how}{seen}{advice}{output}")]
    NoRequest {
        /// The address that it was given.
        url: String,
        /// What the server saw instead.
        seen: String,
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
        "the command sent {number} requests to a server without faults. If it means to send one, \
         it may apply it twice even if nothing fails. Otherwise give a command that sends one \
         request: the audit cannot tell others from retries"
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
    pub(crate) fn no_request(
        end: &ClientEnd,
        server: &ScriptedServer,
        settings: &AuditSettings,
    ) -> Self {
        let seen = server.log().problem();
        let stopped = end.cause == ExitCause::Stopped;
        let names_url = settings
            .command
            .iter()
            .any(|word| word.to_string_lossy().contains("{url}"));
        Self::NoRequest {
            url: server.url(0),
            how: match stopped {
                true => format!("it was stopped after {}", show(end.after)),
                false => end.to_string(),
            },
            advice: match (stopped, end.left_processes, names_url) {
                _ if seen.is_some() && settings.protocol.http2 && settings.protocol.tls => {
                    "; it must speak HTTP/2 and trust the certificate in {ca}, or AUDIT_CA"
                }
                _ if seen.is_some() && settings.protocol.http2 => {
                    "; it must speak HTTP/2 at once, without an upgrade from HTTP/1.1"
                }
                _ if seen.is_some() && settings.protocol.tls => {
                    "; it must trust the certificate in {ca}, or AUDIT_CA"
                }
                (true, ..) => "; if it needs longer to start, raise --start-limit",
                (_, true, _) => {
                    "; it left a process running, which was stopped: the command must not end before its request does"
                }
                (.., false) => "; write {url} where the address belongs, or read AUDIT_URL",
                _ => "",
            },
            seen: seen.map_or_else(String::new, |seen| format!("; {seen}")),
            output: match end.stderr.as_str() {
                "" => "; it printed no error".to_owned(),
                text => format!("; it printed:\n{text}"),
            },
        }
    }
}
