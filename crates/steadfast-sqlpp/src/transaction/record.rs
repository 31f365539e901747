//! The entry of a transaction in its record.
//!
//! Clients read it to learn whether a staged change is committed, pending or abandoned,
//! and clean up after transactions that have expired.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_wire::subdoc::{DocFlags, MutationSpec, PathFlags};
use steadfast_wire::{Opcode, Status};

use super::staging::{attribute, keeping_expiry, macro_at};
use super::{ChangeKind, Place, Staged, Transaction};
use crate::error::QueryError;
use crate::keyspace::Keyspace;
use crate::session::Session;

/// The first of the records that clients look through for transactions that were abandoned.
const RECORD: &str = "_txn:atr-0-#14";

impl Transaction {
    /// Makes the entry if there is none, and returns where it is, as documents show it.
    pub(crate) fn enter_record(&self, near: &Keyspace) -> Result<Value, QueryError> {
        let (record, wanted) = {
            let changes = self.changes.lock();
            (changes.record.clone(), changes.wanted_record.clone())
        };
        let place = match record {
            Some(place) => place,
            None => {
                let (bucket, collection) = wanted.unwrap_or_else(|| (near.bucket().to_owned(), 0));
                let place = Place {
                    bucket,
                    collection,
                    key: RECORD.to_owned(),
                };
                self.make_entry(&place, near.session())?;
                self.changes.lock().record = Some(place.clone());
                place
            }
        };
        let shown = Keyspace::of_place(near.session(), &place)?.shown(&place.key, "coll");
        Ok(shown)
    }

    fn make_entry(&self, place: &Place, session: &Arc<dyn Session>) -> Result<(), QueryError> {
        let path = format!("attempts.{}", self.id);
        let entry = json!({
            "tid": self.family, "st": "PENDING", "d": "n",
            "exp": u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX),
        });
        let (entry, started) = (entry.to_string(), format!("{path}.tst"));
        let specs = [
            MutationSpec {
                flags: PathFlags::XATTR | PathFlags::CREATE_PARENTS,
                ..attribute(&path, &entry)
            },
            macro_at(&started, "\"${Mutation.CAS}\""),
            MutationSpec {
                opcode: Opcode::Set,
                flags: PathFlags::empty(),
                path: &[],
                // As clients make it: not JSON, so that no index has it.
                value: &[0],
            },
        ];
        let made = Keyspace::of_place(session, place)?
            .mutate(&place.key, keeping_expiry(0, DocFlags::UPSERT, &specs));
        made.map(|_| ()).map_err(|status| {
            let message = format!("Transaction staging error: {status} for the record");
            QueryError::new(17_020, message).asking_for_a_retry()
        })
    }

    /// Changes the state in the entry, and lists the documents for clients that clean up.
    pub(crate) fn set_state(
        &self,
        state: &str,
        staged: &Staged,
        session: &Arc<dyn Session>,
    ) -> Result<(), Status> {
        let place = self
            .changes
            .lock()
            .record
            .clone()
            .ok_or(Status::KeyNotFound)?;
        let list = |wanted: ChangeKind| {
            let places = staged.iter().filter(|(_, change)| change.kind == wanted);
            let shown = places.filter_map(|(place, _)| {
                let keyspace = Keyspace::of_place(session, place).ok()?;
                Some(keyspace.shown(&place.key, "col"))
            });
            Value::Array(shown.collect()).to_string()
        };
        let path = |name: &str| format!("attempts.{}.{name}", self.id);
        let values = [
            // Only an entry that is still there can be changed.
            (Opcode::SubdocReplace, path("st"), json!(state).to_string()),
            (
                Opcode::SubdocDictUpsert,
                path("ins"),
                list(ChangeKind::Insert),
            ),
            (
                Opcode::SubdocDictUpsert,
                path("rep"),
                list(ChangeKind::Replace),
            ),
            (
                Opcode::SubdocDictUpsert,
                path("rem"),
                list(ChangeKind::Remove),
            ),
        ];
        let specs: Vec<MutationSpec<'_>> = values
            .iter()
            .map(|(opcode, path, value)| MutationSpec {
                opcode: *opcode,
                ..attribute(path, value)
            })
            .collect();
        let keyspace = Keyspace::of_place(session, &place).map_err(|_| Status::KeyNotFound)?;
        let change = keeping_expiry(0, DocFlags::empty(), &specs);
        keyspace.mutate(&place.key, change).map(|_| ())
    }

    /// Removes the entry, because no change is left to clean up.
    pub(crate) fn leave_record(&self, session: &Arc<dyn Session>) -> Result<(), QueryError> {
        let Some(place) = self.changes.lock().record.take() else {
            return Ok(());
        };
        let path = format!("attempts.{}", self.id);
        let specs = [MutationSpec {
            opcode: Opcode::SubdocDelete,
            ..attribute(&path, "")
        }];
        let keyspace = Keyspace::of_place(session, &place)?;
        let left = keyspace.mutate(&place.key, keeping_expiry(0, DocFlags::empty(), &specs));
        // A client may have cleaned up first.
        if let Err(status) = left
            && !matches!(status, Status::KeyNotFound | Status::SubdocPathNotFound)
        {
            tracing::debug!(%self.id, %status, "the entry of a transaction remains");
        }
        Ok(())
    }
}

/// Returns whether a staged change belongs to a transaction that is under way, by its record.
pub(crate) fn is_pending(session: &Arc<dyn Session>, staged: &Value) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (id, record) = (text(&staged["id"]["atmpt"]), &staged["atr"]);
    if id.is_empty() {
        return false;
    }
    let names = ["bkt", "scp", "coll"].map(|name| text(&record[name]));
    let Some(collection) = session.collection(&names[0], &names[1], &names[2]) else {
        return false;
    };
    let place = Place {
        bucket: collection.bucket().to_owned(),
        collection: collection.id(),
        key: text(&record["id"]),
    };
    let seen = Keyspace::of_place(session, &place).and_then(|it| it.look(&place.key));
    // If the record cannot be read, the transaction may be pending.
    let Ok(seen) = seen else { return true };
    let entries = seen
        .xattrs
        .as_ref()
        .and_then(|xattrs| xattrs.get("attempts"));
    let Some(entry) = entries.and_then(|entries| entries.get(&id)) else {
        return false;
    };
    match entry["st"].as_str() {
        Some("COMPLETED" | "ROLLED_BACK") => false,
        Some("PENDING") => !has_expired(entry, session),
        _ => true,
    }
}

/// The start is a CAS, whose bytes are reversed in a record.
fn has_expired(entry: &Value, session: &Arc<dyn Session>) -> bool {
    let started = entry["tst"]
        .as_str()
        .and_then(|text| text.strip_prefix("0x"));
    let started = started.and_then(|text| u64::from_str_radix(text, 16).ok());
    let (Some(started), Some(timeout)) = (started, entry["exp"].as_u64()) else {
        return false;
    };
    let ends = started
        .swap_bytes()
        .saturating_add(timeout.saturating_mul(1_000_000));
    session.now() > Duration::from_nanos(ends)
}
