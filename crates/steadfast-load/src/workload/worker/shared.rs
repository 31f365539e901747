//! Operations on documents that all workers use. `history` checks their order.

use steadfast_wire::Opcode;

use super::super::keys;
use super::super::kind::OpKind;
use super::super::plan::PlannedOperation;
use super::super::run_state::RunState;
use super::super::value::{self, Shape};
use super::Worker;
use crate::accounting::WriteOutcome;
use crate::client::{Client, ClientError, Content, Counted, ErrorClass};
use crate::history::{self, Action, Digest, Operation, Outcome, Seen, Tag, Token};
use crate::write_id::WriteId;

/// A text or array that is larger is replaced by an empty one.
const LARGE: usize = 1024;
/// For how many microseconds a lock of the embedded cluster surely holds. It is asked for a
/// second.
const LOCKED: u64 = 900_000;
/// The first expiry that is set: in the year 2096, so that no document expires during a run.
const EXPIRY: u32 = 4_000_000_000;
/// The number of different expiries.
const EXPIRIES: u64 = 1 << 28;

/// An operation on a document of all workers.
struct SharedCall {
    kind: OpKind,
    index: usize,
    action: Action,
    tag: Tag,
    /// The id of a write that carries one.
    id: Option<WriteId>,
}

impl<C: Client> Worker<C> {
    /// Executes an operation on a document of all workers.
    pub(super) async fn use_shared(&mut self, planned: &PlannedOperation) {
        let index = planned.shared;
        let within = |shape: Shape| shape.near(index);
        match planned.kind {
            OpKind::Get | OpKind::Select | OpKind::InsertStatement | OpKind::Unlock => {
                self.get_shared(index).await;
            }
            OpKind::Lookup => self.look_up_shared(index).await,
            OpKind::Upsert | OpKind::DurableUpsert => {
                let index = within(Shape::Document);
                self.upsert_shared(planned.kind, index, &planned.padding)
                    .await;
            }
            OpKind::Insert => self.insert_shared(index, &planned.padding).await,
            OpKind::Replace => {
                self.replace_shared(within(Shape::Document), &planned.padding)
                    .await
            }
            OpKind::Remove => {
                let call = SharedCall::new(planned.kind, index, Action::Remove, Opcode::Delete, 0);
                let key = self.shared(index);
                let removed = self.client.remove(&key);
                self.call(call, removed, cas_only).await;
            }
            OpKind::Increment => {
                let index = within(Shape::Counter);
                let done = self.increment_shared(index).await;
                self.insert_unless(done, index).await;
            }
            OpKind::Append | OpKind::Prepend => {
                let index = within(Shape::Text);
                let done = self.concatenate_shared(planned.kind, index).await;
                self.insert_unless(done, index).await;
            }
            OpKind::ArrayAppend => {
                let index = within(Shape::Array);
                let done = self.push_shared(index).await;
                self.insert_unless(done, index).await;
            }
            OpKind::Touch => self.touch_shared(index).await,
            OpKind::Lock if self.state.is_locking() => {
                self.lock_shared(within(Shape::Document), &planned.padding)
                    .await;
            }
            OpKind::Lock => self.get_shared(index).await,
        }
    }

    /// Reads a document, and empties it if it has grown large.
    async fn get_shared(&self, index: usize) {
        let Some(content) = self.read_shared(index).await else {
            return;
        };
        let shape = Shape::of_shared(index);
        if content.value.len() > LARGE && matches!(shape, Shape::Text | Shape::Array) {
            let empty = value::initial(shape);
            let action = Action::Replace(value::body(&empty), content.cas);
            let call = SharedCall::new(OpKind::Replace, index, action, Opcode::Replace, 0);
            let key = self.shared(index);
            let replaced = self.client.replace(&key, &empty, content.cas);
            self.call(call, replaced, cas_only).await;
        }
    }

    async fn read_shared(&self, index: usize) -> Option<Content> {
        let call = SharedCall::read(OpKind::Get, index);
        let (key, shape) = (self.shared(index), Shape::of_shared(index));
        let read = self.client.get(&key);
        self.call(call, read, |content| found(shape, content)).await
    }

    async fn look_up_shared(&self, index: usize) {
        let (key, shape) = (self.shared(index), Shape::of_shared(index));
        let call = SharedCall::read(OpKind::Lookup, index);
        if shape == Shape::Array {
            let found_part = self.client.lookup_array(&key);
            self.call(call, found_part, |content| found(shape, content))
                .await;
        } else {
            let read = self.client.get_with_expiry(&key);
            self.call(call, read, |content| found(shape, content)).await;
        }
    }

    async fn upsert_shared(&self, kind: OpKind, index: usize, padding: &str) {
        let id = self.log.lock().begin_shared(kind);
        let value = value::document(id, padding);
        let action = Action::Upsert(value::body(&value));
        let call = SharedCall::with_id(kind, index, action, Opcode::Set, id);
        let key = self.shared(index);
        let durable = kind == OpKind::DurableUpsert;
        let written = self.client.upsert(&key, &value, durable);
        self.call(call, written, cas_only).await;
    }

    async fn insert_shared(&self, index: usize, padding: &str) {
        let (key, shape) = (self.shared(index), Shape::of_shared(index));
        let kind = OpKind::Insert;
        let id = (shape == Shape::Document).then(|| self.log.lock().begin_shared(kind));
        let value = id.map_or_else(|| value::initial(shape), |id| value::document(id, padding));
        let action = Action::Insert(value::body(&value));
        let call = match id {
            Some(id) => SharedCall::with_id(kind, index, action, Opcode::Add, id),
            None => SharedCall::new(kind, index, action, Opcode::Add, 0),
        };
        self.call(call, self.client.insert(&key, &value), cas_only)
            .await;
    }

    /// Inserts a document that may be missing, because adding to it failed.
    async fn insert_unless(&self, done: bool, index: usize) {
        if !done {
            self.insert_shared(index, "").await;
        }
    }

    /// Reads a document, and replaces it if nobody else does.
    async fn replace_shared(&self, index: usize, padding: &str) {
        let Some(content) = self.read_shared(index).await else {
            return;
        };
        self.replace_with_cas(index, padding, content.cas).await;
    }

    async fn replace_with_cas(&self, index: usize, padding: &str, cas: u64) {
        let id = self.log.lock().begin_shared(OpKind::Replace);
        let value = value::document(id, padding);
        let action = Action::Replace(value::body(&value), cas);
        let call = SharedCall::with_id(OpKind::Replace, index, action, Opcode::Replace, id);
        let key = self.shared(index);
        let replaced = self.client.replace(&key, &value, cas);
        self.call(call, replaced, cas_only).await;
    }

    async fn increment_shared(&self, index: usize) -> bool {
        let id = self.log.lock().begin_shared(OpKind::Increment);
        let delta = keys::pack(id);
        let action = Action::Increment(delta);
        let call = SharedCall::with_id(OpKind::Increment, index, action, Opcode::Increment, id);
        let key = self.shared(index);
        let added = self.client.increment(&key, delta);
        self.call(call, added, |counted: &Counted| Outcome::Done {
            cas: Some(counted.cas),
            seen: Some(Seen {
                value: history::Value::Number(counted.value),
                format: None,
                expiry: None,
            }),
        })
        .await
        .is_some()
    }

    async fn concatenate_shared(&self, kind: OpKind, index: usize) -> bool {
        let id = self.log.lock().begin_shared(kind);
        let (key, part) = (self.shared(index), format!("{id};"));
        let digest = Digest::of(part.as_bytes());
        let ended = if kind == OpKind::Append {
            let call = SharedCall::with_id(kind, index, Action::Append(digest), Opcode::Append, id);
            self.call(call, self.client.append(&key, part), cas_only)
                .await
        } else {
            let call =
                SharedCall::with_id(kind, index, Action::Prepend(digest), Opcode::Prepend, id);
            self.call(call, self.client.prepend(&key, part), cas_only)
                .await
        };
        ended.is_some()
    }

    async fn push_shared(&self, index: usize) -> bool {
        let kind = OpKind::ArrayAppend;
        let id = self.log.lock().begin_shared(kind);
        let opcode = Opcode::SubdocMultiMutation;
        let call = SharedCall::with_id(kind, index, Action::Push(id), opcode, id);
        let (key, element) = (self.shared(index), id.to_string());
        let pushed = self.client.array_append(&key, &element);
        self.call(call, pushed, cas_only).await.is_some()
    }

    async fn touch_shared(&self, index: usize) {
        let unique = (u64::from(self.number) << 16 | self.operations & 0xffff) % EXPIRIES;
        // Below 2³², because both parts are.
        let expiry = EXPIRY + unique as u32;
        let tag = u64::from(expiry);
        let call = SharedCall::new(
            OpKind::Touch,
            index,
            Action::Touch(expiry),
            Opcode::Touch,
            tag,
        );
        let key = self.shared(index);
        self.call(call, self.client.touch(&key, expiry), cas_only)
            .await;
    }

    /// Locks a document. Then unlocks it, or replaces it with the CAS of the lock.
    async fn lock_shared(&self, index: usize, padding: &str) {
        let time = if self.state.has_journal() { LOCKED } else { 0 };
        let key = self.shared(index);
        let call = SharedCall {
            action: Action::Lock(time),
            ..SharedCall::read(OpKind::Lock, index)
        };
        let shape = Shape::of_shared(index);
        let locked = self.client.lock(&key);
        let Some(content) = self
            .call(call, locked, |content| found(shape, content))
            .await
        else {
            return;
        };
        if self.operations.is_multiple_of(2) {
            return self.replace_with_cas(index, padding, content.cas).await;
        }
        let call = SharedCall {
            action: Action::Unlock(content.cas),
            ..SharedCall::read(OpKind::Unlock, index)
        };
        let unlocked = self.client.unlock(&key, content.cas);
        self.call(call, unlocked, |()| Outcome::Done {
            cas: None,
            seen: None,
        })
        .await;
    }

    /// Makes a call, and records it in the history of its document.
    async fn call<T>(
        &self,
        call: SharedCall,
        future: impl Future<Output = Result<T, ClientError>>,
        done: impl FnOnce(&T) -> Outcome,
    ) -> Option<T> {
        let history = &self.state.shared[call.index];
        let mut begun = None;
        let ended = self
            .timed(call.kind, async {
                begun = Some({
                    let mut history = history.lock();
                    let now = self.state.now_micros();
                    (history.begin(now), now, self.state.failovers())
                });
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
            failovers: (failovers, self.state.failovers()),
            action: call.action,
            outcome,
        };
        history.lock().end(&token, call.tag, operation);
        if let Err(error) = &ended
            && !is_answer(call.kind, error)
        {
            self.explain(call.kind, &self.shared(call.index), error);
        }
        ended.ok()
    }

    fn shared(&self, index: usize) -> String {
        keys::shared(&self.state.prefix, index)
    }
}

/// The read of a document of all workers at the end of the run.
pub(crate) struct FinalRead {
    index: usize,
    token: Token,
    begin: u64,
}

impl FinalRead {
    pub(crate) fn begin(state: &RunState, index: usize) -> Self {
        let mut history = state.shared[index].lock();
        let begin = state.now_micros();
        let token = history.begin(begin);
        Self {
            index,
            token,
            begin,
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
            failovers: (state.failovers(), state.failovers()),
            action: Action::Read,
            outcome,
        };
        let mut history = state.shared[self.index].lock();
        history.end(&self.token, (Opcode::Get, 0), operation);
    }
}

impl SharedCall {
    fn new(kind: OpKind, index: usize, action: Action, opcode: Opcode, carries: u64) -> Self {
        Self {
            kind,
            index,
            action,
            tag: (opcode, carries),
            id: None,
        }
    }

    fn with_id(kind: OpKind, index: usize, action: Action, opcode: Opcode, id: WriteId) -> Self {
        Self {
            id: Some(id),
            ..Self::new(kind, index, action, opcode, keys::pack(id))
        }
    }

    fn read(kind: OpKind, index: usize) -> Self {
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
        ErrorClass::Explained | ErrorClass::Authentication | ErrorClass::Unexplained => {
            Outcome::Failed
        }
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
        ErrorClass::Explained | ErrorClass::Authentication => false,
    }
}

fn cas_only(cas: &u64) -> Outcome {
    Outcome::Done {
        cas: Some(*cas),
        seen: None,
    }
}

fn found(shape: Shape, content: &Content) -> Outcome {
    Outcome::Done {
        cas: Some(content.cas),
        seen: Some(shape.seen(content)),
    }
}
