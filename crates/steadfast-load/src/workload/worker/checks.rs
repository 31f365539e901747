//! Reading back: what must be in a document is looked for there.

use std::time::Duration;

use bytes::Bytes;

use super::super::book::{Check, Content, Counter};
use super::super::keys::{self, REGISTERS};
use super::super::kind::Kind;
use super::{Remains, Worker};
use crate::accounting::{Outcome, Violation, Wrong};
use crate::client::{Client, Nature};
use crate::token::Token;

/// How long to wait before something is read again that could not be.
const REST: Duration = Duration::from_millis(20);
/// One of so many documents that were removed is looked for once more.
const LOOKED_FOR: u64 = 4;
/// How many documents that may be there are remembered, so that they can be removed.
const UNSURE: usize = 4096;

impl<C: Client> Worker<C> {
    pub(super) fn check_later(&mut self, made: Token, content: Content) {
        self.checks.push_back(Check { made, content });
    }

    /// Reads the document back that has waited longest, and removes it.
    pub(super) async fn check_one(&mut self) {
        let Some(mut check) = self.checks.pop_front() else {
            return;
        };
        if self.scene.has_given_up() {
            // What cannot be read back even in the end is unchecked by the ledger's rules.
            self.unsure(check.made);
            return;
        }
        let key = self.own(check.made);
        let read = self.scene.patiently(self.client.get(&key));
        let found = match self.timed(Kind::Get, read).await {
            Ok(document) => Some(Token::find_all(&document)),
            Err(trouble) if trouble.nature == Nature::NotFound => None,
            Err(trouble) => {
                self.explain(Kind::Get, &key, &trouble);
                if !self.scene.has_given_up() {
                    self.unread_because = Some(trouble.history);
                }
                self.checks.push_back(check);
                self.rest().await;
                return;
            }
        };
        let removal = keys::removal_of(check.made);
        self.compare_content(&check, &key, found.as_deref());
        if found.is_none() {
            let now = self.scene.now();
            self.ledger.lock().give_back(removal, now);
            self.unsure(check.made);
            return;
        }
        self.ledger.lock().begin_aside(removal);
        let removed = self.client.remove(&key);
        let removed = self.write(Kind::Remove, removal, &key, removed).await;
        match removed {
            Outcome::Acknowledged => self.check_removed(&check, &key).await,
            Outcome::Ambiguous => self.unsure(check.made),
            Outcome::Failed => {
                // It was not applied, so it is still to be done, before its number is settled.
                check.content = Content::Seen;
                self.checks.push_front(check);
                self.rest().await;
            }
        }
    }

    /// Enters what was found of the writes into a document.
    fn compare_content(&self, check: &Check, key: &str, found: Option<&[Token]>) {
        let mut ledger = self.ledger.lock();
        let made = check.made;
        let (expected, times) = match &check.content {
            Content::Itself => {
                let found = found.unwrap_or_default();
                let times = found.iter().filter(|token| **token == made).count();
                (std::slice::from_ref(&made), times)
            }
            Content::Writes(writes) => (&**writes, usize::from(found.is_some())),
            Content::Seen => {
                if found.is_none() {
                    // Its removal was said to have failed, and its effect is there.
                    ledger.found(keys::removal_of(made), 1);
                }
                return;
            }
        };
        ledger.found(made, times);
        let found = found.unwrap_or_default();
        for write in expected.iter().filter(|write| **write != made) {
            let times = found.iter().filter(|token| *token == write).count();
            ledger.found(*write, times);
        }
        if let Some(stray) = found.iter().find(|token| !expected.contains(token)) {
            let wrong = Wrong::Unexplained("there is something in it that was not written there");
            let what = format!("{key}, found {stray}");
            ledger.violate(Violation::of(wrong, Kind::Get.name(), what));
        }
    }

    /// Some of the documents whose removal was acknowledged are looked for once more.
    async fn check_removed(&self, check: &Check, key: &str) {
        if !check.made.number.is_multiple_of(LOOKED_FOR) {
            return;
        }
        match self.timed(Kind::Get, self.client.get(key)).await {
            Ok(_) => {
                let wrong = Wrong::Lost("its removal was acknowledged, and it is still there");
                let violation = Violation::of(wrong, Kind::Remove.name(), key);
                self.ledger.lock().violate(violation);
            }
            Err(trouble) if trouble.nature == Nature::NotFound => {}
            Err(trouble) => self.explain(Kind::Get, key, &trouble),
        }
    }

    /// A document may be there, and nobody will look for it again.
    fn unsure(&mut self, made: Token) {
        if self.unsure.len() < UNSURE {
            self.unsure.push_back(made);
        }
    }

    /// Removes documents that may be there, once the accounting is done with them: else a run of
    /// hours would fill the cluster with what was left of its ambiguous removals.
    pub(super) async fn sweep(&mut self) {
        while let Some(made) = self.unsure.front().copied() {
            if !self.ledger.lock().sweep(keys::removal_of(made)) {
                return;
            }
            self.unsure.pop_front();
            match self.client.remove(&self.own(made)).await {
                Ok(()) => {}
                Err(trouble) if trouble.nature == Nature::NotFound => {}
                Err(_) => {
                    // No part of the workload: another time will do.
                    self.unsure.push_back(made);
                    return;
                }
            }
        }
    }

    /// In the end there is nothing else to do than to try again.
    async fn rest(&self) {
        if self.scene.has_ended() {
            tokio::time::sleep(REST).await;
        }
    }

    pub(super) async fn finish(mut self) -> Remains {
        for growing in [self.text.take(), self.array.take()].into_iter().flatten() {
            self.check_later(growing.made, Content::Writes(growing.writes));
        }
        while !self.checks.is_empty() {
            self.check_one().await;
        }
        for register in 0..REGISTERS {
            let key = self.register(register);
            if let Some(document) = self.read_in_the_end(&key).await {
                self.check_register(register, &key, document.as_deref());
            }
        }
        if let Some(counter) = &self.counter {
            self.check_counter(counter).await;
        }
        Remains {
            counter: self.counter.as_ref().map(|counter| self.own(counter.made)),
            registers: (0..REGISTERS).map(|index| self.register(index)).collect(),
            unsure: self.unsure.iter().map(|made| self.own(*made)).collect(),
        }
    }

    async fn check_counter(&self, counter: &Counter) {
        let key = self.own(counter.made);
        let Some(document) = self.read_in_the_end(&key).await else {
            return;
        };
        let text = document.as_deref().map(std::str::from_utf8);
        let wrong = match text {
            None => Some(Wrong::Lost("the counter is not there")),
            Some(Ok(text)) => match text.parse() {
                Ok(value) => counter.judge(value),
                Err(_) => Some(Wrong::Unexplained("the counter is no number")),
            },
            Some(Err(_)) => Some(Wrong::Unexplained("the counter is no number")),
        };
        if let Some(wrong) = wrong {
            let violation = Violation::of(wrong, "increment", key);
            self.ledger.lock().violate(violation);
        }
    }

    /// What is there, perhaps nothing, when nothing is broken any more. None if it cannot be read
    /// all the same, which is noted: what cannot be read was not checked.
    async fn read_in_the_end(&self, key: &str) -> Option<Option<Bytes>> {
        let wrong = Wrong::Unchecked("it could not be read in the end");
        let mut unread = Violation::of(wrong, Kind::Get.name(), key);
        unread.history.clone_from(&self.unread_because);
        while !self.scene.has_given_up() {
            let read = self.scene.patiently(self.client.get(key));
            match self.timed(Kind::Get, read).await {
                Ok(document) => return Some(Some(document)),
                Err(trouble) if trouble.nature == Nature::NotFound => return Some(None),
                Err(trouble) => {
                    self.explain(Kind::Get, key, &trouble);
                    if !self.scene.has_given_up() {
                        unread = unread.with_history(trouble.history);
                    }
                }
            }
            self.rest().await;
        }
        self.ledger.lock().violate(unread);
        None
    }
}
