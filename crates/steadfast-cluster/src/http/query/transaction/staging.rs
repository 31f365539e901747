//! Staged changes in documents.

use std::sync::Arc;

use serde_json::{Value, json};
use steadfast_wire::subdoc::{DocFlags, MultiExtras, MutationSpec, PathFlags};
use steadfast_wire::{Opcode, Status};

use super::super::super::HttpSession;
use super::super::super::language::Row;
use super::super::error::QueryError;
use super::super::keyspace::{Keyspace, to_row};
use super::record::is_pending;
use super::{ChangeKind, Place, StagedChange, Transaction, random_id};
use crate::store::document::{JSON_FLAGS, Xattrs};
use crate::store::operations::{StoreMode, WriteRequest};
use crate::store::write::Written;
use crate::subdoc::mutate::MutateError;

/// A document, live or deleted, with its attributes.
#[derive(Default)]
pub(super) struct Seen {
    /// Zero if there is not even a tombstone.
    pub cas: u64,
    pub live: Option<Row>,
    pub xattrs: Option<Arc<Xattrs>>,
}

impl Seen {
    /// The change that is staged here, by whichever transaction.
    fn staged(&self) -> &Value {
        let staged = self.xattrs.as_ref().and_then(|xattrs| xattrs.get("txn"));
        staged.unwrap_or(&Value::Null)
    }

    fn change_of(&self, transaction: &Transaction) -> Option<StagedChange> {
        let staged = self.staged();
        if staged["id"]["atmpt"] != transaction.id.as_str() {
            return None;
        }
        let flags = staged["aux"]["uf"].as_u64();
        Some(StagedChange {
            kind: ChangeKind::read(&staged["op"]["type"])?,
            value: Arc::new(staged["op"]["stgd"].clone()),
            flags: flags
                .and_then(|flags| flags.try_into().ok())
                .unwrap_or(JSON_FLAGS),
            cas: self.cas,
        })
    }
}

impl Keyspace {
    /// The document as a transaction sees it.
    pub(in crate::http::query) fn read_in(
        &self,
        transaction: &Transaction,
        key: &str,
    ) -> Result<Option<Row>, QueryError> {
        let seen = self.look(key)?;
        Ok(match seen.change_of(transaction) {
            Some(change) if change.kind == ChangeKind::Remove => None,
            Some(change) => Some(row(key, &change)),
            None => seen.live,
        })
    }

    /// The change of a document that a transaction has staged.
    pub(super) fn staged_by(
        &self,
        transaction: &Transaction,
        key: &str,
    ) -> Result<Option<StagedChange>, QueryError> {
        Ok(self.look(key)?.change_of(transaction))
    }

    /// Stages a change; without a value, the removal. Returns the document, or nothing if there
    /// was none to remove.
    pub(in crate::http::query) fn stage(
        &self,
        transaction: &Transaction,
        mode: StoreMode,
        key: &str,
        value: Option<&Value>,
    ) -> Result<Option<Row>, QueryError> {
        let seen = self.look(key)?;
        let before = transaction.change(&self.place(key));
        let exists = match &before {
            Some(change) => change.kind != ChangeKind::Remove,
            None => seen.live.is_some(),
        };
        match (mode, value) {
            (_, None) if !exists => return Ok(None),
            (StoreMode::Add, Some(_)) if exists => return Err(QueryError::duplicate_key(key)),
            (StoreMode::Replace, Some(_)) if !exists => return Err(QueryError::key_not_found(key)),
            _ => {}
        }
        let taken = match &before {
            Some(change) => change.cas != seen.cas,
            None => is_pending(self.session(), seen.staged()),
        };
        if taken {
            return Err(conflict(key, Status::KeyExists));
        }
        let inserted = before
            .as_ref()
            .is_some_and(|change| change.kind == ChangeKind::Insert);
        let kind = match (value, &seen.live) {
            (None, _) if inserted => {
                let removed = before.as_ref().map(|change| row(key, change));
                self.unstage(transaction, key)?;
                return Ok(removed);
            }
            (None, _) => ChangeKind::Remove,
            (Some(_), Some(_)) => ChangeKind::Replace,
            (Some(_), None) => ChangeKind::Insert,
        };
        let change = StagedChange {
            kind,
            value: Arc::new(value.cloned().unwrap_or_default()),
            flags: JSON_FLAGS,
            cas: seen.cas,
        };
        let change = self.put(transaction, key, change, Some(seen.cas))?;
        match value {
            Some(_) => Ok(Some(row(key, &change))),
            None => Ok(seen.live),
        }
    }

    /// Writes a staged change into its document, which must have this CAS if one is given.
    pub(super) fn put(
        &self,
        transaction: &Transaction,
        key: &str,
        change: StagedChange,
        cas: Option<u64>,
    ) -> Result<StagedChange, QueryError> {
        let record = transaction.enter_record(self)?;
        let cas = match (cas, transaction.change(&self.place(key))) {
            (Some(cas), _) => cas,
            (None, Some(change)) => change.cas,
            (None, None) => self.look(key)?.cas,
        };
        let mut staged = json!({
            "id": {"txn": transaction.family, "atmpt": transaction.id, "op": random_id()},
            "atr": record,
            "op": {"type": change.kind.name()},
            "aux": {"uf": change.flags},
        });
        if change.kind != ChangeKind::Remove {
            staged["op"]["stgd"] = (*change.value).clone();
        }
        let staged = staged.to_string();
        let mut specs = vec![
            attribute("txn", &staged),
            macro_at("txn.op.crc32", "\"${Mutation.value_crc32c}\""),
        ];
        if change.kind != ChangeKind::Insert {
            specs.extend([
                macro_at("txn.restore.CAS", "\"${$document.CAS}\""),
                macro_at("txn.restore.exptime", "\"${$document.exptime}\""),
                macro_at("txn.restore.revid", "\"${$document.revid}\""),
            ]);
        }
        let flags = match cas {
            0 => DocFlags::ACCESS_DELETED | DocFlags::CREATE_AS_DELETED | DocFlags::INSERT,
            _ => DocFlags::ACCESS_DELETED,
        };
        self.check_room().map_err(|status| conflict(key, status))?;
        let cas = self.mutate(key, cas, keeping(flags), &specs);
        let cas = cas.map_err(|status| conflict(key, status))?;
        let change = StagedChange { cas, ..change };
        let mut changes = transaction.changes.lock();
        changes.staged.insert(self.place(key), change.clone());
        Ok(change)
    }

    /// Takes a staged change out of its document.
    pub(super) fn unstage(&self, transaction: &Transaction, key: &str) -> Result<(), QueryError> {
        let seen = self.look(key)?;
        if seen.change_of(transaction).is_some() {
            let specs = [MutationSpec {
                opcode: Opcode::SubdocDelete,
                ..attribute("txn", "")
            }];
            self.mutate(key, seen.cas, keeping(DocFlags::ACCESS_DELETED), &specs)
                .map_err(|status| conflict(key, status))?;
        }
        transaction.changes.lock().staged.remove(&self.place(key));
        Ok(())
    }

    /// Makes a staged change visible to all.
    pub(super) fn apply(
        &self,
        transaction: &Transaction,
        key: &str,
        change: &StagedChange,
    ) -> Result<(), QueryError> {
        let seen = self.look(key)?;
        let staged = seen.change_of(transaction).is_some();
        if change.kind == ChangeKind::Remove {
            return self.remove_now(key).map(|_| ());
        }
        if !staged {
            // A write outside of transactions has replaced it. The committed change replaces that.
            return self
                .store_now(StoreMode::Set, key, &change.value)
                .map(|_| ());
        }
        let specs = [
            MutationSpec {
                opcode: Opcode::SubdocReplaceBodyWithXattr,
                ..attribute("txn.op.stgd", "")
            },
            MutationSpec {
                opcode: Opcode::SubdocDelete,
                ..attribute("txn", "")
            },
        ];
        let revive = match seen.live {
            Some(_) => DocFlags::empty(),
            None => DocFlags::ACCESS_DELETED | DocFlags::REVIVE,
        };
        let extras = MultiExtras {
            expiry: Some(self.bucket().max_ttl(self.collection())),
            user_flags: Some(change.flags),
            doc_flags: revive,
        };
        let applied = self.mutate(key, seen.cas, (extras, false), &specs);
        applied.map(|_| ()).map_err(|status| conflict(key, status))
    }

    /// The document with its attributes, live or deleted.
    pub(super) fn look(&self, key: &str) -> Result<Seen, QueryError> {
        let full_key = self.full_key(key);
        let seen = self.at(key, Opcode::Get, |vbucket, context| {
            match vbucket.get_with_tombstones(&full_key, context) {
                Err(Status::KeyNotFound) => Ok(Seen::default()),
                Err(status) => Err(status),
                Ok((document, cas)) => Ok(Seen {
                    cas,
                    live: match document.deleted {
                        true => None,
                        false => Some(to_row(key, document)?),
                    },
                    xattrs: document.xattrs.clone(),
                }),
            }
        });
        seen.map_err(|status| {
            let message = format!("Transaction fetch error: {status} for key {key}");
            QueryError::new(17_017, message).asking_for_a_retry()
        })
    }

    /// Changes parts of a document, and returns its new CAS.
    pub(super) fn mutate(
        &self,
        key: &str,
        cas: u64,
        (extras, preserve_expiry): (MultiExtras, bool),
        specs: &[MutationSpec<'_>],
    ) -> Result<u64, Status> {
        let full_key = self.full_key(key);
        let change = WriteRequest {
            key: &full_key,
            cas,
            preserve_expiry,
            durability: None,
        };
        self.at(key, Opcode::SubdocMultiMutation, |vbucket, context| {
            match vbucket.mutate_parts(change, extras, specs, context) {
                Err(MutateError::At(_, status) | MutateError::Whole(status)) => Err(status),
                Ok(done) => match done.written {
                    Written::Done(receipt) => Ok(receipt.cas),
                    // Only a durable write waits, and none is asked for.
                    Written::Pending(_) => Err(Status::SyncWriteInProgress),
                },
            }
        })
    }

    /// The keyspace of a document's place.
    pub(super) fn of_place(session: &HttpSession, place: &Place) -> Result<Self, QueryError> {
        Self::of_id(session, &place.bucket, place.collection)
    }

    /// A document's place as records and documents show it; the member for the collection has
    /// another name in each.
    pub(super) fn shown(&self, key: &str, collection: &str) -> Value {
        let names = self.bucket().manifest().names(self.collection());
        let (scope, name) = names.unwrap_or_default();
        json!({"bkt": &*self.bucket().name, "scp": scope, collection: name, "id": key})
    }

    /// The place of a document.
    pub(super) fn place(&self, key: &str) -> Place {
        Place {
            bucket: self.bucket().name.to_string(),
            collection: self.collection(),
            key: key.to_owned(),
        }
    }
}

/// Options that leave the expiry as it is.
fn keeping(doc_flags: DocFlags) -> (MultiExtras, bool) {
    let extras = MultiExtras {
        doc_flags,
        ..MultiExtras::default()
    };
    (extras, true)
}

/// Sets an attribute to a JSON text.
pub(super) fn attribute<'a>(path: &'a str, value: &'a str) -> MutationSpec<'a> {
    MutationSpec {
        opcode: Opcode::SubdocDictUpsert,
        flags: PathFlags::XATTR,
        path: path.as_bytes(),
        value: value.as_bytes(),
    }
}

/// Sets an attribute to the value of a macro.
pub(super) fn macro_at<'a>(path: &'a str, value: &'a str) -> MutationSpec<'a> {
    MutationSpec {
        flags: PathFlags::XATTR | PathFlags::EXPAND_MACROS | PathFlags::CREATE_PARENTS,
        ..attribute(path, value)
    }
}

fn row(key: &str, change: &StagedChange) -> Row {
    Row {
        key: key.to_owned(),
        cas: change.cas,
        flags: change.flags,
        expiry: 0,
        value: (*change.value).clone(),
    }
}

/// The document belongs to another transaction, or has changed meanwhile.
fn conflict(key: &str, status: Status) -> QueryError {
    let message = format!("Transaction staging error: {status} for key {key}");
    let error = QueryError::new(17_020, message);
    match status {
        Status::TooBig => error.with_cause("failed", false, true),
        _ => error.asking_for_a_retry(),
    }
}
