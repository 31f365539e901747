//! Registers: documents that the worker overwrites. Each read must find the last write.

use std::time::Duration;

use super::super::expected::EndedWrite;
use super::super::keys;
use super::super::kind::OpKind;
use super::super::value::{document, whole};
use super::Worker;
use crate::accounting::ViolationKind;
use crate::client::Client;
use crate::write_id::WriteId;

/// How long a document stays locked, unless the unlock is lost.
const LOCKED: Duration = Duration::from_millis(30);

impl<C: Client> Worker<C> {
    pub(super) async fn get(&self, register: usize) {
        let key = self.register(register);
        match self.timed(OpKind::Get, self.client.get(&key)).await {
            Ok(found) => self.check_register(register, &key, Some(&found.value)),
            Err(error) if error.is_not_found() => {
                self.check_register(register, &key, None);
            }
            Err(error) => self.explain(OpKind::Get, &key, &error),
        }
    }

    /// Checks that a read found the last acknowledged write, or an ambiguous one.
    pub(super) fn check_register(&self, register: usize, key: &str, document: Option<&[u8]>) {
        let found = document.map(whole);
        if found == Some(None) {
            let kind = ViolationKind::Unexplained("the document is not as it was written");
            return self.violate(kind, OpKind::Get.name(), key);
        }
        self.compare(OpKind::Get, register, key, found.flatten());
    }

    pub(super) async fn select(&self, register: usize) {
        let key = self.register(register);
        match self.timed(OpKind::Select, self.client.select(&key)).await {
            Ok(id) => {
                let found = id.and_then(|id| WriteId::find(id.as_bytes()));
                self.compare(OpKind::Select, register, &key, found);
            }
            Err(error) => self.explain(OpKind::Select, &key, &error),
        }
    }

    pub(super) async fn upsert(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let write = self.overwrite(OpKind::Upsert, &key, padding).await;
        self.registers[register].ended(&write, self.state.late);
    }

    /// Writes a document that is locked at the same time, so that the write has to wait.
    pub(super) async fn upsert_locked(&mut self, register: usize, padding: &str) {
        let key = self.register(register);
        let locked = self.timed(OpKind::Lock, self.client.lock(&key)).await;
        let unlock = async {
            match locked {
                Ok(found) => {
                    tokio::time::sleep(LOCKED).await;
                    // The lock may have expired, or its node may have crashed.
                    let _ = self.client.unlock(&key, found.cas).await;
                }
                Err(error) => self.explain(OpKind::Lock, &key, &error),
            }
        };
        let ((), write) = tokio::join!(unlock, self.overwrite(OpKind::Upsert, &key, padding));
        self.registers[register].ended(&write, self.state.late);
    }

    async fn overwrite(&self, kind: OpKind, key: &str, padding: &str) -> EndedWrite {
        let id = self.log.lock().begin(kind);
        let value = document(id, padding);
        let began = self.state.now();
        let written = self.client.upsert(key, &value, false);
        let outcome = self.write(kind, id, key, written).await;
        EndedWrite {
            id,
            outcome,
            began,
            ended: self.state.now(),
        }
    }

    fn compare(&self, kind: OpKind, register: usize, key: &str, found: Option<WriteId>) {
        if !self.registers[register].may_be(found) {
            let lost = ViolationKind::Lost("a read did not find the last acknowledged write");
            let found = found.map_or_else(|| "nothing".to_owned(), |id| id.to_string());
            self.violate(lost, kind.name(), format!("{key}, found {found}"));
        }
    }

    pub(super) fn register(&self, index: usize) -> String {
        keys::register(&self.state.prefix, self.number, index)
    }
}
