//! Learns what the command sends to a server without faults.
//!
//! The audit judges what arrives. A command may ignore the method that it is asked for, or send
//! no key; then cases of that kind would show nothing, and the report says so.

use std::time::Duration;

use crate::cases::RequestKind;
use crate::command::{Assignment, ClientEnd, CommandTemplate, ExitCause};
use crate::run::{AuditError, AuditSettings, until_limit};
use crate::server::{ScriptedServer, ServerScript};

/// What a command sent when it was asked for a kind of request.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) asked: RequestKind,
    pub(crate) sent: RequestKind,
    /// How long the command took to its first request.
    pub(crate) startup: Duration,
    /// The size of the body.
    pub(crate) body: u64,
    pub(crate) end: ClientEnd,
}

impl Probe {
    /// Runs the command once.
    ///
    /// # Errors
    /// If it does not start, or does not send exactly one request.
    pub(crate) async fn run(
        settings: &AuditSettings,
        template: &CommandTemplate,
        asked: RequestKind,
        file: &str,
    ) -> Result<Self, AuditError> {
        let script = ServerScript {
            fault: None,
            refuses_for: Duration::ZERO,
            path: "/audit-0".to_owned(),
        };
        let server = ScriptedServer::start(script).map_err(AuditError::Server)?;
        let log = server.log().clone();
        let assignment = Assignment::new(&asked, server.url(0), file);
        let expired = until_limit(&log, settings.start_limit, settings.limit, || {});
        let ended = template.run(&assignment, expired).await;
        let end = ended.map_err(|source| {
            let program = template.program();
            AuditError::CannotStart { program, source }
        })?;
        let arrivals = log.arrivals();
        let Some(first) = arrivals.first() else {
            return Err(AuditError::no_request(&end, &server.url(0), settings));
        };
        if let ExitCause::Stopped = end.cause {
            return Err(AuditError::DoesNotEnd { after: end.after });
        }
        if arrivals.len() > 1 {
            return Err(AuditError::ManyRequests {
                number: arrivals.len(),
            });
        }
        let sent = RequestKind {
            method: first.method.clone().unwrap_or_default(),
            keyed: first.key.is_some(),
        };
        Ok(Self {
            asked,
            sent,
            startup: first.at,
            body: first.body,
            end,
        })
    }
}

impl Assignment {
    pub(crate) fn new(kind: &RequestKind, url: String, file: &str) -> Self {
        Self {
            url,
            method: kind.method.clone(),
            key: match kind.keyed {
                true => "5f2c7a0e-audit".to_owned(),
                false => String::new(),
            },
            file: file.to_owned(),
        }
    }
}
