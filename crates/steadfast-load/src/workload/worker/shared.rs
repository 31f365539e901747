//! Operations on documents that all workers use. `history` checks their order.

use steadfast_wire::Opcode;

use super::super::keys::{self, BUSY, SHARED};
use super::super::kind::OpKind;
use super::super::plan::PlannedOperation;
use super::super::value::{self, Shape};
use super::Worker;
use super::call::{SharedCall, cas_only, found};
use crate::client::{Client, Content, Counted};
use crate::history::{self, Action, Body, Digest, Outcome};

/// A text or array that is larger is replaced by an empty one.
const LARGE: usize = 1024;
/// For how many microseconds a lock of the embedded cluster surely holds. It is asked for a
/// second.
const LOCKED: u64 = 900_000;
/// The first expiry that is set: in the year 2096, so that no document expires during a run.
const EXPIRY: u32 = 4_000_000_000;
/// The number of different expiries.
const EXPIRIES: u64 = 1 << 28;

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
            OpKind::Lock if self.state.has_journal() && self.state.takes_lock_test() => {
                self.test_lock(&planned.padding).await;
            }
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

    /// Reads a document, and replaces it unless another worker does so first. Then often tries
    /// the same CAS again, which the document no longer has.
    async fn replace_shared(&self, index: usize, padding: &str) {
        let Some(content) = self.read_shared(index).await else {
            return;
        };
        let replaced = self.replace_with_cas(index, padding, content.cas).await;
        if replaced && self.operations.is_multiple_of(2) {
            self.replace_with_cas(index, padding, content.cas).await;
        }
    }

    /// Replaces a document that has this CAS. Returns whether it succeeded.
    async fn replace_with_cas(&self, index: usize, padding: &str, cas: u64) -> bool {
        let id = self.log.lock().begin_shared(OpKind::Replace);
        let value = value::document(id, padding);
        let action = Action::Replace(value::body(&value), cas);
        let call = SharedCall::with_id(OpKind::Replace, index, action, Opcode::Replace, id);
        let key = self.shared(index);
        let replaced = self.client.replace(&key, &value, cas);
        self.call(call, replaced, cas_only).await.is_some()
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
            seen: Some(Body {
                value: history::DocumentValue::Number(counted.value),
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
        // Below 2³²: the sum is at most 4,268,435,456.
        let expiry = EXPIRY + (self.state.next_touch() % EXPIRIES) as u32;
        let tag = u64::from(expiry);
        let call = SharedCall::new(
            OpKind::Touch,
            index,
            Action::Touch(expiry),
            Opcode::Touch,
            tag,
        );
        let key = self.shared(index);
        let touched = self.call(call, self.client.touch(&key, expiry), cas_only);
        if touched.await.is_some() {
            // Before another write changes the expiry.
            self.look_up_shared(index).await;
        }
    }

    /// Writes to a document that is locked. The write must wait until the lock has expired, or
    /// time out. No other operation has to wait for it.
    async fn test_lock(&self, padding: &str) {
        let index = BUSY + self.operations as usize % (SHARED - BUSY);
        self.upsert_shared(OpKind::Upsert, index, padding).await;
        if self.lock_content(index).await.is_some() {
            self.upsert_shared(OpKind::Upsert, index, padding).await;
        }
    }

    /// Locks a document. Then unlocks it, or replaces it with the CAS of the lock.
    async fn lock_shared(&self, index: usize, padding: &str) {
        let Some(content) = self.lock_content(index).await else {
            return;
        };
        let key = self.shared(index);
        if self.operations.is_multiple_of(2) {
            self.replace_with_cas(index, padding, content.cas).await;
            return;
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

    /// Locks a document, and returns what is in it.
    async fn lock_content(&self, index: usize) -> Option<Content> {
        let time = if self.state.has_journal() { LOCKED } else { 0 };
        let call = SharedCall {
            action: Action::Lock(time),
            ..SharedCall::read(OpKind::Lock, index)
        };
        let (key, shape) = (self.shared(index), Shape::of_shared(index));
        let locked = self.client.lock(&key);
        self.call(call, locked, |content| found(shape, content))
            .await
    }

    pub(super) fn shared(&self, index: usize) -> String {
        keys::shared(&self.state.prefix, index)
    }
}
