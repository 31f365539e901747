//! Documents that are made once, and those that grow by what is added to them.

use super::super::book::{Content, Counter, Growing};
use super::super::keys;
use super::super::kind::Kind;
use super::{Worker, document};
use crate::accounting::Outcome;
use crate::client::{Client, Value};
use crate::token::Token;

/// How many writes a document takes before it is read back.
const GROWN: usize = 64;

impl<C: Client> Worker<C> {
    /// Writes a new document. If it may be there it is returned, and else of no more interest.
    pub(super) async fn insert(&mut self, kind: Kind, value: Value<'_>) -> Option<Token> {
        let content = match &value {
            Value::Document { .. } => Content::Itself,
            // A counter, if it is there, starts at nothing.
            Value::Counter(_) | Value::Text(_) | Value::Array { .. } => Content::Writes(Vec::new()),
        };
        let token = {
            let mut ledger = self.ledger.lock();
            let token = ledger.begin(kind);
            ledger.set_aside(Kind::Remove);
            token
        };
        let value = match value {
            Value::Document { padding, .. } => document(token, padding),
            other => other,
        };
        let key = self.own(token);
        let outcome = if kind == Kind::InsertStatement {
            let written = self.client.insert_statement(&key, &value);
            self.write(kind, token, &key, written).await
        } else {
            let written = self.client.insert(&key, &value);
            self.write(kind, token, &key, written).await
        };
        match outcome {
            Outcome::Acknowledged => Some(token),
            Outcome::Failed | Outcome::Ambiguous => {
                self.check_later(token, content);
                None
            }
        }
    }

    pub(super) async fn increment(&mut self) {
        if self.counter.is_none() {
            let made = self.insert(Kind::Insert, Value::Counter(0)).await;
            // It is not read back as a document: what must be in it is not in it once, but added.
            if let Some(made) = made {
                // Nor is it removed, and the number for that must not hold up all that follow.
                let (removal, now) = (keys::removal_of(made), self.scene.now());
                let mut ledger = self.ledger.lock();
                ledger.found(made, 1);
                ledger.give_back(removal, now);
                drop(ledger);
                self.counter = Some(Counter::new(made));
            }
            return;
        }
        let Some(made) = self.counter.as_ref().map(|counter| counter.made) else {
            return;
        };
        let key = self.own(made);
        let token = self.ledger.lock().begin(Kind::Increment);
        let added = self.client.increment(&key, token.number);
        let outcome = self.write(Kind::Increment, token, &key, added).await;
        if let Some(counter) = &mut self.counter {
            counter.ended(token.number, outcome);
        }
    }

    pub(super) async fn append(&mut self) {
        let Some(mut text) = self.text.take() else {
            let made = self.insert(Kind::Insert, Value::Text("")).await;
            self.text = made.map(grows);
            return;
        };
        let key = self.own(text.made);
        let token = self.ledger.lock().begin(Kind::Append);
        let appended = self.client.append(&key, format!("{token};"));
        self.write(Kind::Append, token, &key, appended).await;
        text.writes.push(token);
        self.text = self.check_grown(text);
    }

    pub(super) async fn array_append(&mut self) {
        let Some(mut array) = self.array.take() else {
            let made = self.insert(Kind::Insert, Value::Array { a: [] }).await;
            self.array = made.map(grows);
            return;
        };
        let key = self.own(array.made);
        let token = self.ledger.lock().begin(Kind::ArrayAppend);
        let element = token.to_string();
        let appended = self.client.array_append(&key, &element);
        self.write(Kind::ArrayAppend, token, &key, appended).await;
        array.writes.push(token);
        self.array = self.check_grown(array);
    }

    /// Lets a document grow on, or has it read back.
    fn check_grown(&mut self, growing: Growing) -> Option<Growing> {
        if growing.writes.len() < GROWN {
            return Some(growing);
        }
        self.check_later(growing.made, Content::Writes(growing.writes));
        None
    }

    pub(super) fn own(&self, token: Token) -> String {
        keys::own(&self.scene.prefix, token)
    }
}

fn grows(made: Token) -> Growing {
    let writes = Vec::with_capacity(GROWN);
    Growing { made, writes }
}
