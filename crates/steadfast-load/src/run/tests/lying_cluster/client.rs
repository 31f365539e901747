//! The lying cluster as a client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use steadfast_wire::Opcode;
use tokio::time::Instant;

use super::lie::Lie;
use super::store::{Asked, Liar, Stored, error};
use crate::client::{Client, ClientError, Content, Counted, ErrorClass, Value};
use crate::workload::OpKind;
use crate::write_id::WriteId;

/// How long a lock holds.
const LOCKED: Duration = Duration::from_secs(1);

fn content(found: Stored, expiry: Option<u32>) -> Content {
    Content {
        cas: if found.is_locked() {
            u64::MAX
        } else {
            found.cas
        },
        value: Bytes::from(found.bytes),
        flags: Some(0x0200_0000),
        expiry,
    }
}

/// Exempts insertions of documents that grow, because later writes into them would fail.
fn insertion(kind: OpKind, value: &Value<'_>) -> OpKind {
    match value {
        Value::Document { .. } => kind,
        _ => OpKind::Get,
    }
}

impl Client for Liar {
    async fn get(&self, key: &str) -> Result<Content, ClientError> {
        Ok(content(self.read(key).await?, None))
    }

    async fn get_with_expiry(&self, key: &str) -> Result<Content, ClientError> {
        let found = self.read(key).await?;
        let expiry = found.expiry;
        Ok(content(found, Some(expiry)))
    }

    async fn lookup_array(&self, key: &str) -> Result<Content, ClientError> {
        let mut found = self.read(key).await?;
        found.bytes.drain(..5);
        found.bytes.pop();
        Ok(Content {
            flags: None,
            ..content(found, None)
        })
    }

    async fn upsert(
        &self,
        key: &str,
        value: &Value<'_>,
        durable: bool,
    ) -> Result<u64, ClientError> {
        let kind = if durable {
            OpKind::DurableUpsert
        } else {
            OpKind::Upsert
        };
        self.set(kind, (Opcode::Set, key), value, None).await
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<u64, ClientError> {
        let kind = insertion(OpKind::Insert, value);
        self.set(kind, (Opcode::Add, key), value, None).await
    }

    async fn replace(&self, key: &str, value: &Value<'_>, cas: u64) -> Result<u64, ClientError> {
        let kind = insertion(OpKind::Replace, value);
        self.set(kind, (Opcode::Replace, key), value, Some(cas))
            .await
    }

    async fn remove(&self, key: &str) -> Result<u64, ClientError> {
        let asked = Asked::new(OpKind::Remove, Opcode::Delete, key, Vec::new());
        self.write(asked, |_, _| None).await
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<Counted, ClientError> {
        let asked = Asked::new(
            OpKind::Increment,
            Opcode::Increment,
            key,
            delta.to_be_bytes().to_vec(),
        );
        let sum = AtomicU64::new(0);
        let adding = self.write(asked, |current, lie| {
            let mut changed = current.unwrap().clone();
            let before: u64 = std::str::from_utf8(&changed.bytes)
                .unwrap()
                .parse()
                .unwrap();
            let after = before.wrapping_add(delta);
            let shown = after.wrapping_add(u64::from(lie == Lie::WrongResult));
            sum.store(shown, Ordering::Relaxed);
            changed.bytes = after.to_string().into_bytes();
            Some(changed)
        });
        let cas = adding.await?;
        let value = sum.into_inner();
        Ok(Counted { value, cas })
    }

    async fn append(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let to = (OpKind::Append, Opcode::Append, key);
        self.grow(to, bytes, false).await
    }

    async fn prepend(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let to = (OpKind::Prepend, Opcode::Prepend, key);
        self.grow(to, bytes, true).await
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<u64, ClientError> {
        let asked = Asked::new(
            OpKind::ArrayAppend,
            Opcode::SubdocMultiMutation,
            key,
            element.into(),
        );
        self.write(asked, |current, _| {
            let mut changed = current.unwrap().clone();
            changed.bytes.truncate(changed.bytes.len() - 2);
            let comma = if changed.bytes.ends_with(b"[") {
                ""
            } else {
                ","
            };
            let more = format!("{comma}\"{element}\"]}}");
            changed.bytes.extend(more.as_bytes());
            Some(changed)
        })
        .await
    }

    async fn touch(&self, key: &str, expiry: u32) -> Result<u64, ClientError> {
        let asked = Asked::new(
            OpKind::Touch,
            Opcode::Touch,
            key,
            expiry.to_be_bytes().to_vec(),
        );
        self.write(asked, |current, lie| {
            let mut changed = current.unwrap().clone();
            changed.expiry = expiry + u32::from(lie == Lie::WrongExpiry);
            Some(changed)
        })
        .await
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        Ok(found.and_then(|found| WriteId::find(&found.bytes).map(|id| id.to_string())))
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
        let to = (Opcode::Add, key);
        let written = self.set(OpKind::InsertStatement, to, value, None);
        written.await.map(|_| ())
    }

    async fn lock(&self, key: &str) -> Result<Content, ClientError> {
        self.turn().await?;
        let mut store = self.store.lock();
        let store = &mut *store;
        let Some(found) = store.documents.get_mut(key) else {
            return self.reject(ErrorClass::NotFound);
        };
        if found.is_locked() {
            return Err(error(ErrorClass::Explained, false));
        }
        store.cas += 1;
        found.cas = store.cas;
        let locked = content(found.clone(), None);
        found.locked = Some(Instant::now() + LOCKED);
        Ok(locked)
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), ClientError> {
        // Others may write first.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut store = self.store.lock();
        match store.documents.get_mut(key) {
            Some(found) if found.is_locked() && found.cas == cas => {
                found.locked = None;
                Ok(())
            }
            Some(_) => self.reject(ErrorClass::CasMismatch),
            None => self.reject(ErrorClass::NotFound),
        }
    }

    fn set_password(&self, _: &str, _: &str) {}
}
