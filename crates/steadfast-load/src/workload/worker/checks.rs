//! Reading back: what must be in a document is looked for there.

use super::super::book::{Check, Counter};
use super::super::keys::{self, REGISTERS};
use super::super::kind::Kind;
use super::{Remains, Worker};
use crate::accounting::{Outcome, Violation, Wrong};
use crate::client::{Client, Nature};
use crate::token::Token;

/// How often reading a document back is tried at the end, when nothing is broken any more.
const TRIES: u32 = 20;

impl<C: Client> Worker<C> {
    pub(super) fn check_later(&mut self, made: Token, writes: Vec<Token>) {
        self.checks.push_back(Check {
            made,
            writes,
            tries: 0,
        });
    }

    /// Reads the document back that has waited longest, and removes it.
    pub(super) async fn check_one(&mut self) {
        let Some(mut check) = self.checks.pop_front() else {
            return;
        };
        let key = self.own(check.made);
        let found = match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => Some(Token::find_all(&document)),
            Err(trouble) if trouble.nature == Nature::NotFound => None,
            Err(trouble) => {
                self.explain(Kind::Get, &key, &trouble);
                check.tries += 1;
                // What cannot be read back even in the end is a violation by the ledger's rules.
                if check.tries < TRIES || !self.scene.has_ended() {
                    self.checks.push_back(check);
                }
                return;
            }
        };
        let removal = keys::removal_of(check.made);
        {
            let mut ledger = self.ledger.lock();
            ledger.found(check.made, usize::from(found.is_some()));
            let found = found.as_deref().unwrap_or_default();
            for write in &check.writes {
                let times = found.iter().filter(|token| *token == write).count();
                ledger.found(*write, times);
            }
        }
        if found.is_none() {
            let now = self.scene.now();
            self.ledger.lock().give_back(removal, now);
            return;
        }
        self.ledger.lock().begin_aside(removal);
        let removed = self.client.remove(&key);
        let removed = self.write(Kind::Remove, removal, &key, removed).await;
        check.tries += 1;
        if removed == Outcome::Failed && (check.tries < TRIES || !self.scene.has_ended()) {
            // It was not applied, so it is still to be done, before its number is settled.
            check.writes.clear();
            self.checks.push_front(check);
        }
    }

    pub(super) async fn finish(mut self) -> Remains {
        for growing in [self.text.take(), self.array.take()].into_iter().flatten() {
            self.check_later(growing.made, growing.writes);
        }
        while !self.checks.is_empty() {
            self.check_one().await;
        }
        for register in 0..REGISTERS {
            self.get(register).await;
        }
        if let Some(counter) = &self.counter {
            self.check_counter(counter).await;
        }
        Remains {
            counter: self.counter.as_ref().map(|counter| self.own(counter.made)),
            registers: (0..REGISTERS).map(|index| self.register(index)).collect(),
        }
    }

    async fn check_counter(&self, counter: &Counter) {
        let key = self.own(counter.made);
        match self.timed(Kind::Get, self.client.get(&key)).await {
            Ok(document) => {
                let value = std::str::from_utf8(&document).ok();
                let wrong = match value.and_then(|text| text.parse().ok()) {
                    Some(value) => counter.judge(value),
                    None => Some(Wrong::Unexplained("the counter is no number")),
                };
                if let Some(wrong) = wrong {
                    let violation = Violation::of(wrong, "increment", key);
                    self.ledger.lock().violate(violation);
                }
            }
            Err(trouble) => self.explain(Kind::Get, &key, &trouble),
        }
    }
}
