//! Reads documents back, compares their contents, and removes them.

use std::time::Duration;

use bytes::Bytes;

use super::super::expected::{Counter, Document};
use super::super::keys::{self, REGISTERS};
use super::super::kind::OpKind;
use super::super::value::Shape;
use super::Worker;
use crate::accounting::{Violation, ViolationKind, WriteOutcome};
use crate::client::Client;
use crate::write_id::WriteId;

/// The pause before a document is read again.
const REST: Duration = Duration::from_millis(20);
/// The number of documents that are remembered for later removal.
const UNSURE: usize = 4096;

impl<C: Client> Worker<C> {
    /// Reads back the document that has waited longest, and removes it.
    pub(super) async fn read_back_one(&mut self) {
        let Some(mut document) = self.read_backs.pop_front() else {
            return;
        };
        if self.state.has_given_up() {
            // The log counts its writes as unchecked.
            self.unsure(document.made);
            return;
        }
        let key = self.own(document.made);
        let read = self.state.until_given_up(self.client.get(&key));
        let found = match self.timed(OpKind::Get, read).await {
            Ok(found) => {
                let ids = document.shape.ids(&found.value);
                if ids.is_none() && document.shape != Shape::Counter {
                    let kind = ViolationKind::Unexplained("the document is not as it was written");
                    self.violate(kind, OpKind::Get.name(), &*key);
                }
                // Whatever is left of it is compared, too.
                Some(ids.unwrap_or_else(|| WriteId::find_all(&found.value)))
            }
            Err(error) if error.is_not_found() => None,
            Err(error) => {
                self.explain(OpKind::Get, &key, &error);
                if !self.state.has_given_up() {
                    self.unread_because = Some(error.history);
                }
                self.read_backs.push_back(document);
                self.rest().await;
                return;
            }
        };
        let removal = keys::removal_id(document.made);
        self.compare_content(&document, &key, found.as_deref());
        if found.is_none() {
            let now = self.state.now();
            self.log.lock().cancel_reserved(removal, now);
            self.unsure(document.made);
            return;
        }
        self.log.lock().begin_reserved(removal);
        let removed = self.client.remove(&key);
        let removed = self.write(OpKind::Remove, removal, &key, removed).await;
        match removed {
            WriteOutcome::Acknowledged => self.removed.push_back(document.made),
            WriteOutcome::Ambiguous => self.unsure(document.made),
            WriteOutcome::Failed => {
                // The document is still there: remove it before the reserved id is settled.
                document.compared = true;
                self.read_backs.push_front(document);
                self.rest().await;
            }
        }
    }

    /// Records which of the expected writes were found in a document.
    fn compare_content(&self, document: &Document, key: &str, found: Option<&[WriteId]>) {
        let mut log = self.log.lock();
        if document.compared {
            if found.is_none() {
                // The removal was reported as failed, and the document is gone.
                log.found(keys::removal_id(document.made), 1);
            }
            return;
        }
        log.found(document.made, usize::from(found.is_some()));
        let found = found.unwrap_or_default();
        for (write, _) in &document.writes {
            let times = found.iter().filter(|id| *id == write).count();
            log.found(*write, times);
        }
        if !document.is_in_order(found) {
            let kind = ViolationKind::Unexplained("its writes are not in the order they were made");
            log.violate(Violation::new(kind, OpKind::Get.name(), key));
        }
        let is_own = |id: &WriteId| document.writes.iter().any(|(write, _)| write == id);
        if let Some(stray) = found.iter().find(|id| !is_own(id)) {
            let kind =
                ViolationKind::Unexplained("the document has a write that belongs elsewhere");
            let subject = format!("{key}, found {stray}");
            log.violate(Violation::new(kind, OpKind::Get.name(), subject));
        }
    }

    /// Checks that the document that was removed longest ago is still removed.
    pub(super) async fn check_removed(&mut self) {
        let Some(made) = self.removed.pop_front() else {
            return;
        };
        let key = self.own(made);
        let read = self.state.until_given_up(self.client.get(&key));
        match self.timed(OpKind::Get, read).await {
            Ok(_) => {
                let kind = ViolationKind::Lost("its removal was acknowledged, and it still exists");
                self.violate(kind, OpKind::Remove.name(), key);
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => {
                self.explain(OpKind::Get, &key, &error);
                if !self.state.has_given_up() {
                    self.removed.push_back(made);
                    self.rest().await;
                }
            }
        }
    }

    /// Remembers a document that may still exist, for later removal.
    fn unsure(&mut self, made: WriteId) {
        if self.unsure.len() < UNSURE {
            self.unsure.push_back(made);
        }
    }

    /// Removes documents that may still exist and whose removal is settled. Otherwise a long run
    /// would fill the cluster with documents of ambiguous removals.
    pub(super) async fn remove_unsure(&mut self) {
        while let Some(made) = self.unsure.front().copied() {
            if !self.log.lock().repeat_removal(keys::removal_id(made)) {
                return;
            }
            self.unsure.pop_front();
            match self.client.remove(&self.own(made)).await {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(_) => {
                    // Not part of the workload: try again later.
                    self.unsure.push_back(made);
                    return;
                }
            }
        }
    }

    /// Pauses before another attempt, if there is no other work.
    async fn rest(&self) {
        if self.state.has_ended() {
            tokio::time::sleep(REST).await;
        }
    }

    pub(super) async fn finish(mut self) -> Vec<String> {
        let growing = self.growing.iter_mut().filter_map(Option::take);
        self.read_backs.extend(growing);
        while !self.read_backs.is_empty() {
            self.read_back_one().await;
        }
        while !self.removed.is_empty() && !self.state.has_given_up() {
            self.check_removed().await;
        }
        for register in 0..REGISTERS {
            let key = self.register(register);
            if let Some(document) = self.read_at_the_end(&key).await {
                self.check_register(register, &key, document.as_deref());
            }
        }
        if let Some(counter) = &self.counter {
            self.check_counter(counter).await;
        }
        let registers = (0..REGISTERS).map(|index| self.register(index));
        let counter = self.counter.iter().map(|counter| counter.made);
        let own = self.unsure.iter().copied().chain(counter);
        registers.chain(own.map(|made| self.own(made))).collect()
    }

    async fn check_counter(&self, counter: &Counter) {
        let key = self.own(counter.made);
        let Some(document) = self.read_at_the_end(&key).await else {
            return;
        };
        let parse = |bytes: Bytes| std::str::from_utf8(&bytes).ok()?.parse().ok();
        let kind = match document.map(parse) {
            None => Some(ViolationKind::Lost("the counter is missing")),
            Some(None) => Some(ViolationKind::Unexplained("the counter is not a number")),
            Some(Some(value)) => counter.judge(value),
        };
        if let Some(kind) = kind {
            self.violate(kind, OpKind::Increment.name(), key);
        }
    }

    /// Reads a document after all faults have ended. Returns none, and records a violation, if it
    /// cannot be read.
    async fn read_at_the_end(&self, key: &str) -> Option<Option<Bytes>> {
        let kind = ViolationKind::Unchecked("it could not be read at the end");
        let mut unread = Violation::new(kind, OpKind::Get.name(), key);
        unread.history.clone_from(&self.unread_because);
        while !self.state.has_given_up() {
            let read = self.state.until_given_up(self.client.get(key));
            match self.timed(OpKind::Get, read).await {
                Ok(found) => return Some(Some(found.value)),
                Err(error) if error.is_not_found() => return Some(None),
                Err(error) => {
                    self.explain(OpKind::Get, key, &error);
                    if !self.state.has_given_up() {
                        unread = unread.with_history(error.history);
                    }
                }
            }
            self.rest().await;
        }
        self.log.lock().violate(unread);
        None
    }
}
