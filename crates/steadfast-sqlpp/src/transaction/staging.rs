//! Staged changes in documents.

use std::sync::Arc;

use serde_json::{Value, json};
use steadfast_wire::subdoc::{DocFlags, MultiExtras, MutationSpec, PathFlags};
use steadfast_wire::{Opcode, Status};

use super::record::is_pending;
use super::{ChangeKind, Place, StagedChange, Transaction, random_id};
use crate::error::QueryError;
use crate::keyspace::Keyspace;
use crate::language::Row;
use crate::session::{JSON_FLAGS, Mutation, Seen, Session, WriteMode};

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
    pub(crate) fn read_in(
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
    pub(crate) fn staged_by(
        &self,
        transaction: &Transaction,
        key: &str,
    ) -> Result<Option<StagedChange>, QueryError> {
        Ok(self.look(key)?.change_of(transaction))
    }

    /// Stages a change; without a value, the removal. Returns the document, or nothing if there
    /// was none to remove.
    pub(crate) fn stage(
        &self,
        transaction: &Transaction,
        mode: WriteMode,
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
            (WriteMode::Insert, Some(_)) if exists => return Err(QueryError::duplicate_key(key)),
            (WriteMode::Update, Some(_)) if !exists => return Err(QueryError::key_not_found(key)),
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
    pub(crate) fn put(
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
            "id": {"txn": transaction.family, "atmpt": transaction.id, "op": random_id(&**self.session())},
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
        let cas = self.mutate(key, keeping_expiry(cas, flags, &specs));
        let cas = cas.map_err(|status| conflict(key, status))?;
        let change = StagedChange { cas, ..change };
        let mut changes = transaction.changes.lock();
        changes.staged.insert(self.place(key), change.clone());
        Ok(change)
    }

    /// Takes a staged change out of its document.
    pub(crate) fn unstage(&self, transaction: &Transaction, key: &str) -> Result<(), QueryError> {
        let seen = self.look(key)?;
        if seen.change_of(transaction).is_some() {
            let specs = [MutationSpec {
                opcode: Opcode::SubdocDelete,
                ..attribute("txn", "")
            }];
            self.mutate(
                key,
                keeping_expiry(seen.cas, DocFlags::ACCESS_DELETED, &specs),
            )
            .map_err(|status| conflict(key, status))?;
        }
        transaction.changes.lock().staged.remove(&self.place(key));
        Ok(())
    }

    /// Makes a staged change visible to all.
    pub(crate) fn apply(
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
                .store_now(WriteMode::Upsert, key, &change.value)
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
            expiry: Some(self.max_ttl()),
            user_flags: Some(change.flags),
            doc_flags: revive,
        };
        let change = Mutation {
            cas: seen.cas,
            preserve_expiry: false,
            extras,
            specs: &specs,
        };
        let applied = self.mutate(key, change);
        applied.map(|_| ()).map_err(|status| conflict(key, status))
    }

    /// The document with its attributes, live or deleted.
    pub(crate) fn look(&self, key: &str) -> Result<Seen, QueryError> {
        self.seen(key).map_err(|status| {
            let message = format!("Transaction fetch error: {status} for key {key}");
            QueryError::new(17_017, message).asking_for_a_retry()
        })
    }

    /// The keyspace of a document's place.
    pub(crate) fn of_place(session: &Arc<dyn Session>, place: &Place) -> Result<Self, QueryError> {
        Self::of_id(session, &place.bucket, place.collection)
    }

    /// A document's place as records and documents show it; the member for the collection has
    /// another name in each.
    pub(crate) fn shown(&self, key: &str, collection: &str) -> Value {
        let (scope, name) = self.names().unwrap_or_default();
        json!({"bkt": self.bucket(), "scp": scope, collection: name, "id": key})
    }

    /// The place of a document.
    pub(crate) fn place(&self, key: &str) -> Place {
        Place {
            bucket: self.bucket().to_owned(),
            collection: self.collection(),
            key: key.to_owned(),
        }
    }
}

/// A change that leaves the expiry as it is.
pub(super) fn keeping_expiry<'a>(
    cas: u64,
    doc_flags: DocFlags,
    specs: &'a [MutationSpec<'a>],
) -> Mutation<'a> {
    Mutation {
        cas,
        preserve_expiry: true,
        extras: MultiExtras {
            doc_flags,
            ..MultiExtras::default()
        },
        specs,
    }
}

/// Sets an attribute to a JSON text.
pub(crate) fn attribute<'a>(path: &'a str, value: &'a str) -> MutationSpec<'a> {
    MutationSpec {
        opcode: Opcode::SubdocDictUpsert,
        flags: PathFlags::XATTR,
        path: path.as_bytes(),
        value: value.as_bytes(),
    }
}

/// Sets an attribute to the value of a macro.
pub(crate) fn macro_at<'a>(path: &'a str, value: &'a str) -> MutationSpec<'a> {
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
