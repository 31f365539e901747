//! One operation: measured, logged, and its error explained by a fault.

use std::time::Duration;

use tokio::time::Instant;

use super::super::kind::OpKind;
use super::Worker;
use crate::accounting::{Violation, ViolationKind, WriteOutcome};
use crate::client::{Client, ClientError, Counted, ErrorClass};
use crate::write_id::WriteId;

/// The pause after a failure that took no time, and after rejected credentials. Without it, workers
/// would only repeat the failure, and take the processor from those that wait for a response.
const PAUSE: Duration = Duration::from_millis(5);
/// A failure that comes sooner was probably not sent.
const INSTANT: Duration = Duration::from_micros(100);

/// The result of a write, with its CAS if it has one.
pub(super) trait Acknowledgement {
    fn cas(&self) -> Option<u64>;
}

impl Acknowledgement for u64 {
    fn cas(&self) -> Option<u64> {
        Some(*self)
    }
}

impl Acknowledgement for Counted {
    fn cas(&self) -> Option<u64> {
        Some(self.cas)
    }
}

/// A statement returns no CAS.
impl Acknowledgement for () {
    fn cas(&self) -> Option<u64> {
        None
    }
}

impl<C: Client> Worker<C> {
    /// Completes a write and records its outcome.
    pub(super) async fn write<T: Acknowledgement>(
        &self,
        kind: OpKind,
        id: WriteId,
        key: &str,
        written: impl Future<Output = Result<T, ClientError>>,
    ) -> WriteOutcome {
        let ended = self.timed(kind, written).await;
        let (outcome, history) = match &ended {
            Ok(_) => (WriteOutcome::Acknowledged, None),
            Err(error) if error.ambiguous => (WriteOutcome::Ambiguous, Some(&*error.history)),
            Err(error) => (WriteOutcome::Failed, Some(&*error.history)),
        };
        let now = self.state.now();
        let cas = ended.as_ref().ok().and_then(Acknowledgement::cas);
        self.log.lock().ended(id, outcome, cas, history, now);
        if let Err(error) = &ended {
            self.explain(kind, key, error);
        }
        outcome
    }

    /// Begins an operation when it is due, and measures it. Once the run has ended, an operation
    /// begins at once and belongs to reading back.
    pub(super) async fn timed<T>(
        &self,
        kind: OpKind,
        operation: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let given = self.start.lock().take();
        let start = match given {
            Some(start) => Some(start),
            None => self.pace.next(&self.state).await,
        };
        let began = Instant::now();
        self.stats.begin();
        let ended = operation.await;
        self.stats.end(kind, start, ended.as_ref().err());
        let took = began.elapsed();
        self.state.took(kind, took);
        if let Err(error) = &ended
            && error.ambiguous
        {
            let certain = kind.only_reads()
                || matches!(
                    error.class,
                    ErrorClass::NotFound
                        | ErrorClass::Exists
                        | ErrorClass::CasMismatch
                        | ErrorClass::Authentication
                        | ErrorClass::Denied
                );
            self.log.lock().called_ambiguous(certain);
        }
        if let Err(error) = &ended
            && (matches!(error.class, ErrorClass::Authentication | ErrorClass::Denied)
                || took < INSTANT)
        {
            tokio::time::sleep(PAUSE).await;
        }
        ended
    }

    /// Records a violation if no fault explains the error.
    pub(super) fn explain(&self, kind: OpKind, key: &str, error: &ClientError) {
        let why = match error.class {
            // Its administrator may have withdrawn rights. No fault of a run does.
            ErrorClass::Denied if !self.state.has_journal() => return,
            ErrorClass::Explained => return,
            ErrorClass::Authentication | ErrorClass::Denied
                if self.state.may_refuse_credentials() =>
            {
                return;
            }
            ErrorClass::Authentication => "valid credentials were rejected",
            ErrorClass::Denied => "the user lacks rights that no fault withdrew",
            ErrorClass::NotFound => "an existing document was not found",
            ErrorClass::Exists => "a new document existed already",
            ErrorClass::CasMismatch | ErrorClass::Unexplained => "no fault explains this error",
        };
        let violation = Violation::new(ViolationKind::Unexplained(why), kind.name(), key);
        let violation = violation.with_history(&*error.history);
        self.log.lock().violate(violation);
    }

    pub(super) fn violate(
        &self,
        kind: ViolationKind,
        operation: &'static str,
        subject: impl Into<String>,
    ) {
        let violation = Violation::new(kind, operation, subject);
        self.log.lock().violate(violation);
    }
}
