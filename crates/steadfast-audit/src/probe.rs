//! Learns what the command sends to a server without faults.
//!
//! The audit judges what arrives. A command may ignore the method that it is asked for, or send
//! no key; then cases of that kind would show nothing, and the report says so.

use std::time::Duration;

use crate::cases::RequestKind;
use crate::command::{ClientEnd, CommandTemplate, ExitCause};
use crate::run::{AuditError, AuditSettings, SharedSetup, until_limit};
use crate::server::ScriptedServer;

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
        setup: &SharedSetup,
    ) -> Result<Self, AuditError> {
        let server = ScriptedServer::start(setup.script(0)).map_err(AuditError::Server)?;
        let log = server.log().clone();
        let assignment = setup.assignment(&asked, server.url(0));
        let expired = until_limit(&log, settings.start_limit, settings.limit, || {});
        let ended = template.run(&assignment, expired).await;
        let end = ended.map_err(|source| {
            let program = template.program();
            AuditError::CannotStart { program, source }
        })?;
        let arrivals = log.arrivals();
        let Some(first) = arrivals.first() else {
            return Err(AuditError::no_request(&end, &server, settings));
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
