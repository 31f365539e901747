//! One operation: timed, entered into the ledger, and its error explained.

use std::time::Duration;

use super::super::kind::Kind;
use super::Worker;
use crate::accounting::{Outcome, Violation, Wrong};
use crate::client::{Client, Nature, Trouble};
use crate::token::Token;

/// How long a worker rests whose credentials were refused.
const LOCKED_OUT: Duration = Duration::from_millis(5);

impl<C: Client> Worker<C> {
    /// Makes a write to its end, and enters it into the ledger.
    pub(super) async fn write(
        &self,
        kind: Kind,
        token: Token,
        key: &str,
        written: impl Future<Output = Result<(), Trouble>>,
    ) -> Outcome {
        let ended = self.timed(kind, written).await;
        let (outcome, history) = match &ended {
            Ok(()) => (Outcome::Acknowledged, None),
            Err(trouble) if trouble.ambiguous => (Outcome::Ambiguous, Some(&*trouble.history)),
            Err(trouble) => (Outcome::Failed, Some(&*trouble.history)),
        };
        let now = self.scene.now();
        self.ledger.lock().ended(token, outcome, history, now);
        if let Err(trouble) = &ended {
            self.explain(kind, key, trouble);
        }
        outcome
    }

    pub(super) async fn timed<T>(
        &self,
        kind: Kind,
        operation: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        let began = self.lane.begin();
        let ended = operation.await;
        self.lane.end(kind, began, ended.as_ref().err());
        if let Err(trouble) = &ended
            && trouble.nature == Nature::Authentication
        {
            // Who is refused at once and tries again at once does nothing else.
            tokio::time::sleep(LOCKED_OUT).await;
        }
        ended
    }

    /// Notes an error that nothing explains.
    pub(super) fn explain(&self, kind: Kind, key: &str, trouble: &Trouble) {
        let why = match trouble.nature {
            Nature::Explained => return,
            Nature::Authentication if self.scene.may_refuse_credentials() => return,
            Nature::Authentication => "the credentials were refused, and were right",
            Nature::NotFound => "a document that is there was not found",
            Nature::Unexplained => "no fault explains this error",
        };
        let violation = Violation::of(Wrong::Unexplained(why), kind.name(), key);
        let violation = violation.with_history(&*trouble.history);
        self.ledger.lock().violate(violation);
    }
}
