//! Documents that are made once, and documents that grow.

use super::super::expected::{Counter, Document};
use super::super::keys;
use super::super::kind::OpKind;
use super::super::value::{self, Shape};
use super::Worker;
use crate::accounting::WriteOutcome;
use crate::client::{Client, Value};
use crate::write_id::WriteId;

/// The number of writes after which a document is read back.
const GROWN: usize = 64;

impl<C: Client> Worker<C> {
    /// Inserts a document. Returns it if it was acknowledged; otherwise it is read back.
    pub(super) async fn insert<'a>(
        &mut self,
        kind: OpKind,
        shape: Shape,
        value: impl FnOnce(WriteId) -> Value<'a>,
    ) -> Option<Document> {
        let id = {
            let mut log = self.log.lock();
            let id = log.begin(kind);
            log.reserve(OpKind::Remove);
            id
        };
        let (key, value) = (self.own(id), value(id));
        let outcome = if kind == OpKind::InsertStatement {
            let written = self.client.insert_statement(&key, &value);
            self.write(kind, id, &key, written).await
        } else {
            let written = self.client.insert(&key, &value);
            self.write(kind, id, &key, written).await
        };
        let acknowledged = outcome == WriteOutcome::Acknowledged;
        let document = Document {
            made: id,
            shape,
            writes: match shape {
                Shape::Document => vec![(id, acknowledged)],
                Shape::Counter | Shape::Text | Shape::Array => Vec::new(),
            },
            compared: false,
        };
        match outcome {
            WriteOutcome::Acknowledged => Some(document),
            WriteOutcome::Failed | WriteOutcome::Ambiguous => {
                self.read_backs.push_back(document);
                None
            }
        }
    }

    pub(super) async fn increment(&mut self) {
        let Some(made) = self.counter.as_ref().map(|counter| counter.made) else {
            let shape = Shape::Counter;
            let insert = self.insert(OpKind::Insert, shape, |_| value::initial(shape));
            let inserted = insert.await;
            if let Some(Document { made, .. }) = inserted {
                // A counter is neither read back nor removed like a document. Its reserved
                // removal must not keep later writes from being settled.
                let now = self.state.now();
                let mut log = self.log.lock();
                log.found(made, 1);
                log.cancel_reserved(keys::removal_id(made), now);
                drop(log);
                self.counter = Some(Counter::new(made));
            }
            return;
        };
        let key = self.own(made);
        let id = self.log.lock().begin(OpKind::Increment);
        let mut value = None;
        let added = async {
            let counted = self.client.increment(&key, id.number).await?;
            value = Some(counted.value);
            Ok(counted)
        };
        let outcome = self.write(OpKind::Increment, id, &key, added).await;
        if let Some(counter) = &mut self.counter {
            counter.ended(id.number, outcome);
            // The worker is the only one that adds, so the result shows all earlier additions.
            let wrong = value.and_then(|value| counter.judge(value));
            // Once is enough: all later results are wrong as well.
            if let Some(kind) = wrong.filter(|_| !std::mem::replace(&mut counter.reported, true)) {
                self.violate(kind, OpKind::Increment.name(), key);
            }
        }
    }

    /// Appends to the worker's text or to its array, and has it read back when it is large enough.
    pub(super) async fn append(&mut self, kind: OpKind) {
        let is_array = kind == OpKind::ArrayAppend;
        let slot = usize::from(is_array);
        let Some(mut document) = self.growing[slot].take() else {
            let shape = if is_array { Shape::Array } else { Shape::Text };
            let insert = self.insert(OpKind::Insert, shape, |_| value::initial(shape));
            self.growing[slot] = insert.await;
            return;
        };
        let key = self.own(document.made);
        let id = self.log.lock().begin(kind);
        let outcome = if is_array {
            let element = id.to_string();
            let appended = self.client.array_append(&key, &element);
            self.write(kind, id, &key, appended).await
        } else {
            let appended = self.client.append(&key, format!("{id};"));
            self.write(kind, id, &key, appended).await
        };
        let acknowledged = outcome == WriteOutcome::Acknowledged;
        document.writes.push((id, acknowledged));
        if document.writes.len() < GROWN {
            self.growing[slot] = Some(document);
        } else {
            self.read_backs.push_back(document);
        }
    }

    pub(super) fn own(&self, id: WriteId) -> String {
        keys::own(&self.state.prefix, id)
    }
}
