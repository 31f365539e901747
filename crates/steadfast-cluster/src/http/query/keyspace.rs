//! Documents as statements read and write them.

use std::sync::Arc;

use serde_json::Value;
use steadfast_wire::{DocumentKey, Opcode, Status, leb128, vbucket};

use super::super::HttpSession;
use super::super::language::{KeyspacePath, Row};
use super::error::QueryError;
use super::execute::Execution;
use super::transaction::Transaction;
use crate::bucket::Bucket;
use crate::journal::{Origin, split_key};
use crate::store::document::{DocumentBody, JSON_FLAGS, StoredDocument};
use crate::store::operations::{StoreMode, WriteRequest};
use crate::store::vbucket::{StoreContext, Vbucket};
use crate::store::write::{Receipt, Written};
use crate::topology::NodeId;

/// A collection, opened for one statement.
#[derive(Clone)]
pub(super) struct Keyspace {
    session: HttpSession,
    bucket: Arc<Bucket>,
    collection: u32,
    name: String,
    /// The transaction in which the statement is.
    transaction: Option<Arc<Transaction>>,
}

impl Keyspace {
    /// Opens a collection for a statement. Its context stands in front of a name of one part.
    pub(super) fn open(execution: &Execution<'_>, path: &KeyspacePath) -> Result<Self, QueryError> {
        let (session, user) = (execution.session, execution.user);
        let context = execution.options.text("query_context");
        let name = path.to_string();
        let unknown = || QueryError::unknown_keyspace(&name);
        if path
            .namespace
            .as_deref()
            .is_some_and(|namespace| namespace != "default")
        {
            return Err(unknown());
        }
        let context = context.map(|context| KeyspacePath::quoted(context).parts);
        let context = context.unwrap_or_default();
        let parts: Vec<&str> = path.parts.iter().map(String::as_str).collect();
        let (bucket, scope, collection) = match (parts.as_slice(), context.as_slice()) {
            ([collection], [bucket, scope]) if path.namespace.is_none() => {
                (bucket.as_str(), scope.as_str(), *collection)
            }
            ([bucket], _) => (*bucket, "_default", "_default"),
            ([bucket, scope, collection], _) => (*bucket, *scope, *collection),
            _ => return Err(unknown()),
        };
        if !user.rights.may_open(bucket) {
            return Err(QueryError::unauthorized(&format!("statements on {name}")));
        }
        let bucket = session.shared.bucket(bucket).ok_or_else(unknown)?;
        let manifest = bucket.manifest();
        let collection = manifest.collection_id(&format!("{scope}.{collection}"));
        Ok(Self {
            session: session.clone(),
            collection: collection.map_err(|_| unknown())?,
            bucket,
            name,
            transaction: execution.transaction.clone(),
        })
    }

    /// Opens the collection of a document again, outside of a statement.
    pub(super) fn of_id(
        session: &HttpSession,
        bucket: &str,
        collection: u32,
    ) -> Result<Self, QueryError> {
        let found = session.shared.bucket(bucket);
        let bucket = found.ok_or_else(|| QueryError::unknown_keyspace(bucket))?;
        Ok(Self {
            session: session.clone(),
            name: bucket.name.to_string(),
            bucket,
            collection,
            transaction: None,
        })
    }

    /// The session.
    pub(super) fn session(&self) -> &HttpSession {
        &self.session
    }

    /// The bucket.
    pub(super) fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// The id of the collection.
    pub(super) fn collection(&self) -> u32 {
        self.collection
    }

    /// The document of a key, if it is there and is JSON or can be shown as such.
    pub(super) fn read(&self, key: &str) -> Result<Option<Row>, QueryError> {
        if let Some(transaction) = &self.transaction {
            return self.read_in(transaction, key);
        }
        let full_key = self.full_key(key);
        let found = self.at(key, Opcode::Get, |vbucket, context| {
            let (document, _) = vbucket.get(&full_key, context.origin.node, context.now)?;
            to_row(key, document)
        });
        match found {
            Ok(row) => Ok(Some(row)),
            Err(Status::KeyNotFound) => Ok(None),
            Err(status) => Err(QueryError::new(
                12_008,
                format!("Error performing bulk get operation - cause: {status} for key {key}"),
            )),
        }
    }

    /// All keys, in order.
    pub(super) fn keys(&self) -> Result<Vec<String>, QueryError> {
        let now = self.session.shared.clock.now();
        let mut keys = Vec::new();
        for id in 0..self.bucket.settings.vbuckets {
            let Ok(vbucket) = self.bucket.vbucket(id) else {
                continue;
            };
            let active = self.serving(&vbucket).map_err(|status| {
                QueryError::new(5000, format!("Index scan failed - cause: {status}"))
            })?;
            let Ok(copy) = vbucket.active_copy(active) else {
                continue;
            };
            keys.extend(
                copy.iter()
                    .filter(|(_, document)| document.is_live(now) || self.may_be_staged(document))
                    .map(|(key, _)| split_key(key))
                    .filter(|(collection, _)| *collection == self.collection)
                    .map(|(_, key)| String::from_utf8_lossy(key).into_owned())
                    // Indexes leave out the records of transactions.
                    .filter(|key| !key.starts_with("_txn:")),
            );
        }
        keys.sort_unstable();
        Ok(keys)
    }

    /// Returns whether the transaction of the statement may have an insert here. The read tells.
    fn may_be_staged(&self, document: &StoredDocument) -> bool {
        self.transaction.is_some() && document.is_staged_insert()
    }

    /// Writes a document, or stages it in the statement's transaction.
    pub(super) fn store(
        &self,
        mode: StoreMode,
        key: &str,
        value: &Value,
    ) -> Result<Option<Row>, QueryError> {
        match &self.transaction {
            Some(transaction) => self.stage(transaction, mode, key, Some(value)),
            None => self.store_now(mode, key, value).map(Some),
        }
    }

    /// Removes a document, or stages its removal; false if it was not there.
    pub(super) fn remove(&self, key: &str) -> Result<bool, QueryError> {
        match &self.transaction {
            Some(transaction) => {
                let removed = self.stage(transaction, StoreMode::Replace, key, None)?;
                Ok(removed.is_some())
            }
            None => self.remove_now(key),
        }
    }

    /// Writes a document, whether there is a transaction or not.
    pub(super) fn store_now(
        &self,
        mode: StoreMode,
        key: &str,
        value: &Value,
    ) -> Result<Row, QueryError> {
        let (statement, opcode) = match mode {
            StoreMode::Add => ("INSERT", Opcode::Add),
            StoreMode::Set => ("UPSERT", Opcode::Set),
            StoreMode::Replace => ("UPDATE", Opcode::Replace),
        };
        let full_key = self.full_key(key);
        let stored = self.check_room().and_then(|()| {
            self.at(key, opcode, |vbucket, context| {
                if key.is_empty() || key.len() > DocumentKey::MAX_ID_LEN {
                    return Err(Status::InvalidArguments);
                }
                let body = DocumentBody::plain(value.to_string().into_bytes())?;
                let change = unconditional(&full_key);
                let expiry = self.bucket.max_ttl(self.collection);
                vbucket.store(mode, change, body, JSON_FLAGS, expiry, context)
            })
        });
        let receipt = self.done(stored, statement, key)?;
        Ok(Row {
            key: key.to_owned(),
            cas: receipt.cas,
            flags: JSON_FLAGS,
            expiry: 0,
            value: value.clone(),
        })
    }

    /// Removes a document, whether there is a transaction or not; false if it was not there.
    pub(super) fn remove_now(&self, key: &str) -> Result<bool, QueryError> {
        let full_key = self.full_key(key);
        let removed = self.at(key, Opcode::Delete, |vbucket, context| {
            vbucket.remove(unconditional(&full_key), context)
        });
        if matches!(removed, Err(Status::KeyNotFound)) {
            return Ok(false);
        }
        self.done(removed, "DELETE", key).map(|_| true)
    }

    pub(super) fn full_key(&self, key: &str) -> Vec<u8> {
        [leb128::encode(self.collection).as_ref(), key.as_bytes()].concat()
    }

    /// Rejects a write that a full bucket has no room for. The bucket may be looked through for
    /// expired documents, which takes every lock in turn.
    pub(super) fn check_room(&self) -> Result<(), Status> {
        match self.bucket.is_full(self.session.shared.clock.now()) {
            true => Err(Status::OutOfMemory),
            false => Ok(()),
        }
    }

    /// Does something with the vbucket of a key, on behalf of the node that serves it.
    pub(super) fn at<T>(
        &self,
        key: &str,
        opcode: Opcode,
        action: impl FnOnce(&mut Vbucket, StoreContext<'_>) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let id = vbucket::of_key(key.as_bytes(), self.bucket.settings.vbuckets);
        let now = self.session.shared.clock.now();
        let mut vbucket = self.bucket.vbucket(id)?;
        let origin = Origin {
            node: self.serving(&vbucket)?,
            bucket: &self.bucket.name,
            opcode,
            opaque: 0,
            connection: self.session.connection,
            // The journal identifies the writes of a statement by their keys.
            argument: &[],
        };
        let result = action(&mut vbucket, self.session.shared.context(now, origin));
        self.bucket.account(&mut vbucket);
        result
    }

    /// The node that serves a vbucket, if it is up.
    fn serving(&self, vbucket: &Vbucket) -> Result<NodeId, Status> {
        vbucket
            .active()
            .filter(|node| {
                self.session
                    .shared
                    .node(*node)
                    .is_some_and(|node| node.is_up())
            })
            .ok_or(Status::NotMyVbucket)
    }

    fn done(
        &self,
        written: Result<Written, Status>,
        statement: &str,
        key: &str,
    ) -> Result<Receipt, QueryError> {
        let status = match written {
            Ok(Written::Done(receipt)) => return Ok(receipt),
            // Only a durable write waits, and none is asked for.
            Ok(Written::Pending(_)) => Status::SyncWriteInProgress,
            Err(status) => status,
        };
        let reason = match status {
            Status::KeyExists => serde_json::json!({
                "code": 17012,
                "key": "dml.statement.duplicatekey",
                "message": format!("Duplicate Key: {key}"),
            }),
            _ => serde_json::json!({"code": 12009, "message": status.to_string()}),
        };
        Err(QueryError {
            reason: Some(reason),
            ..QueryError::new(
                12_009,
                format!(
                    "DML Error: failed to perform {statement} on key {key} of {}: {status}",
                    self.name
                ),
            )
        })
    }
}

fn unconditional(key: &[u8]) -> WriteRequest<'_> {
    WriteRequest {
        key,
        cas: 0,
        preserve_expiry: false,
        durability: None,
    }
}

pub(super) fn to_row(key: &str, document: &StoredDocument) -> Result<Row, Status> {
    let bytes = document.inflated()?;
    // Like a real service, shows a document that is not JSON as null.
    let value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Ok(Row {
        key: key.to_owned(),
        cas: document.cas,
        flags: document.flags,
        expiry: document.expiry,
        value,
    })
}
