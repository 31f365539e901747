//! A call on a document that all workers use, recorded in its history.

use steadfast_wire::Opcode;

use super::super::keys;
use super::super::kind::OpKind;
use super::super::run_state::RunState;
use super::super::value::Shape;
use super::Worker;
use crate::accounting::WriteOutcome;
use crate::client::{Client, ClientError, Content, ErrorClass};
use crate::history::{Action, Operation, Outcome, Tag, Token};
use crate::write_id::WriteId;

/// An operation on a document of all workers.
pub(super) struct SharedCall {
    pub(super) kind: OpKind,
    pub(super) index: usize,
    pub(super) action: Action,
    pub(super) tag: Tag,
    /// The id of a write that carries one.
    pub(super) id: Option<WriteId>,
}

impl<C: Client> Worker<C> {
    /// Makes a call, and records it in the history of its document.
    pub(super) async fn call<T>(
        &self,
        call: SharedCall,
        future: impl Future<Output = Result<T, ClientError>>,
        done: impl FnOnce(&T) -> Outcome,
    ) -> Option<T> {
        let history = &self.state.shared[call.index];
        let mut begun = None;
        let ended = self
            .timed(call.kind, async {
                let now = self.state.now_micros();
                let failovers = self.state.failovers(call.index);
                begun = Some((history.begin(now), now, failovers));
                future.await
            })
            .await;
        let (token, begin, failovers) = begun?;
        let outcome = match &ended {
            Ok(result) => done(result),
            Err(error) => failed(&call, error),
        };
        if let Some(id) = call.id {
            let (cas, written) = match &outcome {
                Outcome::Done { cas, .. } => (*cas, WriteOutcome::Acknowledged),
                Outcome::Ambiguous => (None, WriteOutcome::Ambiguous),
                _ => (None, WriteOutcome::Failed),
            };
            let text = ended.as_ref().err().map(|error| &*error.history);
            self.log
                .lock()
                .ended(id, written, cas, text, self.state.now());
        }
        let operation = Operation {
            worker: self.number,
            begin,
            end: self.state.now_micros(),
            failovers: (failovers, self.state.failovers(call.index)),
            action: call.action,
            outcome,
        };
        history.end(&token, call.tag, operation);
        if let Err(error) = &ended
            && !is_answer(call.kind, error)
        {
            self.explain(call.kind, &self.shared(call.index), error);
        }
        ended.ok()
    }
}

/// The read of a document of all workers at the end of the run.
pub(crate) struct FinalRead {
    index: usize,
    token: Token,
    begin: u64,
    failovers: u64,
}

impl FinalRead {
    pub(crate) fn begin(state: &RunState, index: usize) -> Self {
        let begin = state.now_micros();
        let token = state.shared[index].begin(begin);
        Self {
            index,
            token,
            begin,
            failovers: state.failovers(index),
        }
    }

    /// Records what was found.
    pub(crate) fn end(self, state: &RunState, content: Option<&Content>) {
        let shape = Shape::of_shared(self.index);
        let outcome = content.map_or(Outcome::Missing, |content| found(shape, content));
        self.record(state, outcome);
    }

    /// Records that nothing was found out.
    pub(crate) fn abandon(self, state: &RunState) {
        self.record(state, Outcome::Failed);
    }

    fn record(self, state: &RunState, outcome: Outcome) {
        let operation = Operation {
            worker: u16::MAX,
            begin: self.begin,
            end: state.now_micros(),
            failovers: (self.failovers, state.failovers(self.index)),
            action: Action::Read,
            outcome,
        };
        state.shared[self.index].end(&self.token, (Opcode::Get, 0), operation);
    }
}

impl SharedCall {
    pub(super) fn new(
        kind: OpKind,
        index: usize,
        action: Action,
        opcode: Opcode,
        carries: u64,
    ) -> Self {
        Self {
            kind,
            index,
            action,
            tag: (opcode, carries),
            id: None,
        }
    }

    pub(super) fn with_id(
        kind: OpKind,
        index: usize,
        action: Action,
        opcode: Opcode,
        id: WriteId,
    ) -> Self {
        Self {
            id: Some(id),
            ..Self::new(kind, index, action, opcode, keys::pack(id))
        }
    }

    pub(super) fn read(kind: OpKind, index: usize) -> Self {
        Self::new(kind, index, Action::Read, Opcode::Get, 0)
    }
}

/// Returns the outcome of a call that failed.
fn failed(call: &SharedCall, error: &ClientError) -> Outcome {
    if error.ambiguous && !call.kind.only_reads() {
        return Outcome::Ambiguous;
    }
    match error.class {
        // Whatever an unlock meets, it changes nothing.
        _ if call.kind == OpKind::Unlock => Outcome::Failed,
        ErrorClass::NotFound => Outcome::Missing,
        ErrorClass::Exists => Outcome::Exists,
        ErrorClass::CasMismatch => Outcome::Mismatch,
        ErrorClass::Explained
        | ErrorClass::Authentication
        | ErrorClass::Denied
        | ErrorClass::Unexplained => Outcome::Failed,
    }
}

/// Returns whether an error says what is in the document, which others may have changed.
fn is_answer(kind: OpKind, error: &ClientError) -> bool {
    match error.class {
        ErrorClass::NotFound => true,
        ErrorClass::Exists => kind == OpKind::Insert,
        ErrorClass::CasMismatch => matches!(kind, OpKind::Replace | OpKind::Unlock),
        // The lock may have expired.
        ErrorClass::Unexplained => kind == OpKind::Unlock,
        ErrorClass::Explained | ErrorClass::Authentication | ErrorClass::Denied => false,
    }
}

pub(super) fn cas_only(cas: &u64) -> Outcome {
    Outcome::Done {
        cas: Some(*cas),
        seen: None,
    }
}

pub(super) fn found(shape: Shape, content: &Content) -> Outcome {
    Outcome::Done {
        cas: Some(content.cas),
        seen: Some(shape.seen(content)),
    }
}
