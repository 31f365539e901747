//! An operation whose answer is read as a whole, attempt by attempt.

use std::time::Instant;

use bytes::Bytes;
use steadfast::{Call, Failure, RetryStrategy};

use super::answer::{Judged, Refused, is_success};
use super::http::{Exchange, Outgoing};
use super::rows::Members;
use crate::drive::{Attempts, Tried, drive};
use crate::error::{Error, ErrorKind, Place};
use crate::observe::Finished;

/// The most that is read of an answer. The config of a cluster with a thousand
/// buckets is far from it.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// An operation of the management service, or a ping.
pub(super) struct Whole {
    pub(super) name: &'static str,
    pub(super) exchange: Exchange,
    pub(super) outgoing: Outgoing,
    /// Knows more about a refusal than its status says.
    pub(super) kind: fn(u16, &str) -> Option<ErrorKind>,
    pub(super) place: Place,
}

/// What was answered.
pub(super) struct Answered {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Whole {
    /// Runs the operation to its end. Dropping the future abandons the attempt
    /// under way.
    pub(super) async fn run(
        mut self,
        call: Call,
        strategy: &dyn RetryStrategy,
    ) -> Result<Answered, Error> {
        drive(call, strategy, &mut self).await
    }

    async fn try_once(&mut self, deadline: Option<Instant>) -> Result<Answered, Tried> {
        let outgoing = self.outgoing.clone();
        let mut answer = self.exchange.send(outgoing, deadline).await?;
        let body = match answer.body.whole(MAX_ANSWER).await {
            Ok(Ok(body)) => body,
            Ok(Err(_)) => {
                let what = format!("the answer has more than {MAX_ANSWER} bytes");
                return Err(self.exchange.senseless(what).into());
            }
            Err(unread) => return Err(self.exchange.unread(&unread).into()),
        };
        let status = answer.status;
        if is_success(status) {
            return Ok(Answered { status, body });
        }
        let text = String::from_utf8_lossy(&body);
        let mut refused: Refused = Judged {
            status,
            members: &Members::default(),
            text: Some(&text),
            idempotent: false,
        }
        .by_status();
        if let Some(kind) = (self.kind)(status, &text) {
            refused.kind = kind;
        }
        refused.tell(&mut self.exchange.context);
        Err(Tried::Final(refused.kind))
    }
}

impl Attempts for Whole {
    type Output = Answered;

    async fn attempt(&mut self, deadline: Option<Instant>) -> Result<Self::Output, Tried> {
        self.try_once(deadline).await
    }

    async fn woken(&mut self, failure: &Failure) {
        self.exchange.woken(failure).await
    }

    async fn closed(&self) {
        self.exchange.closed().await
    }

    fn explain(&mut self, error: Error) -> Error {
        error
            .with_place(self.place.clone())
            .with_http(self.exchange.context.clone())
    }

    fn finished(&mut self, finished: &Finished) {
        self.exchange.finished(self.name, &self.place, finished);
    }
}
