//! Documents that are written again and again: each read must find the last write.

use std::time::Duration;

use super::super::keys;
use super::super::kind::Kind;
use super::{Worker, document};
use crate::accounting::{Outcome, Violation, Wrong};
use crate::client::{Client, Nature};
use crate::token::Token;

/// How long a document stays locked, unless its unlocking is lost.
const LOCKED: Duration = Duration::from_millis(30);

impl<C: Client> Worker<C> {
    pub(super) async fn get(&self, register: usize) {
        let key = self.register(register);
        match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => self.check_register(register, &key, Some(&document)),
            Err(trouble) if trouble.nature == Nature::NotFound => {
                self.check_register(register, &key, None);
            }
            Err(trouble) => self.explain(Kind::Get, &key, &trouble),
        }
    }

    /// What was read must be the last write, or one that may have been applied.
    pub(super) fn check_register(&self, register: usize, key: &str, document: Option<&[u8]>) {
        let found = document.map(Token::find);
        if found == Some(None) {
            let why = "what was read is no document of this run";
            return self.suspect(Kind::Get, key, why);
        }
        self.compare(Kind::Get, register, key, found.flatten());
    }

    pub(super) async fn select(&self, register: usize) {
        let key = self.register(register);
        match self.timed(Kind::Select, self.client.select(&key)).await {
            Ok(id) => {
                let found = id.and_then(|id| Token::find(id.as_bytes()));
                self.compare(Kind::Select, register, &key, found);
            }
            Err(trouble) => self.explain(Kind::Select, &key, &trouble),
        }
    }

    pub(super) async fn upsert(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let (token, outcome) = self.write_register(&key, padding).await;
        self.registers[register].ended(token, outcome, self.scene.now(), self.scene.late);
    }

    /// Writes a document that is locked meanwhile: it has to wait for the end of the lock.
    pub(super) async fn upsert_locked(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let locked = self.timed(Kind::Lock, self.client.lock(&key)).await;
        let unlock = async {
            match locked {
                Ok(cas) => {
                    tokio::time::sleep(LOCKED).await;
                    // A lock that went away meanwhile, by its time or with its node, is no harm.
                    let _ = self.client.unlock(&key, cas).await;
                }
                Err(trouble) => self.explain(Kind::Lock, &key, &trouble),
            }
        };
        let ((), (token, outcome)) = tokio::join!(unlock, self.write_register(&key, padding));
        self.registers[register].ended(token, outcome, self.scene.now(), self.scene.late);
    }

    async fn write_register(&self, key: &str, padding: &str) -> (Token, Outcome) {
        let token = self.ledger.lock().begin(Kind::Upsert);
        let value = document(token, padding);
        let written = self.client.upsert(key, &value, false);
        (token, self.write(Kind::Upsert, token, key, written).await)
    }

    pub(super) async fn upsert_shared(&self, shared: usize, padding: &str) {
        let key = keys::shared(&self.scene.prefix, shared);
        let token = self.ledger.lock().begin(Kind::DurableUpsert);
        let value = document(token, padding);
        let written = self.client.upsert(&key, &value, true);
        let began = self.scene.now();
        let outcome = self.write(Kind::DurableUpsert, token, &key, written).await;
        let span = (began, self.scene.now());
        let late = self.scene.late;
        self.scene.shared.ended(shared, token, outcome, span, late);
    }

    fn compare(&self, kind: Kind, register: usize, key: &str, found: Option<Token>) {
        if !self.registers[register].may_be(found) {
            let wrong = Wrong::Lost("a read did not find the last write that was acknowledged");
            let found = found.map_or_else(|| "nothing".to_owned(), |token| token.to_string());
            let what = format!("{key}, found {found}");
            let violation = Violation::of(wrong, kind.name(), what);
            self.ledger.lock().violate(violation);
        }
    }

    fn suspect(&self, kind: Kind, key: &str, why: &'static str) {
        let violation = Violation::of(Wrong::Unexplained(why), kind.name(), key);
        self.ledger.lock().violate(violation);
    }

    pub(super) fn register(&self, index: usize) -> String {
        keys::register(&self.scene.prefix, self.number, index)
    }
}
