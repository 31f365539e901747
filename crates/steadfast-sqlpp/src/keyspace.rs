//! Documents as statements read and write them.

use std::sync::Arc;

use serde_json::Value;
use steadfast_wire::Status;

use crate::error::QueryError;
use crate::execute::Execution;
use crate::index_definitions::Indexes;
use crate::language::{KeyspacePath, Row};
use crate::session::{DocumentStore, JSON_FLAGS, Mutation, Seen, Session, WriteMode};
use crate::transaction::Transaction;

/// A collection, opened for one statement.
#[derive(Clone)]
pub(crate) struct Keyspace {
    session: Arc<dyn Session>,
    collection: Arc<dyn DocumentStore>,
    name: String,
    /// Whether writes keep the expiry of their documents.
    preserve_expiry: bool,
    /// The transaction in which the statement is.
    transaction: Option<Arc<Transaction>>,
}

impl Keyspace {
    /// Opens a collection for a statement. Its context stands in front of a name of one part.
    pub(crate) fn open(execution: &Execution<'_>, path: &KeyspacePath) -> Result<Self, QueryError> {
        let session = execution.session;
        let mut path = path.clone();
        let context = execution.options.text("query_context");
        let context = context.map_or_else(Vec::new, |context| KeyspacePath::quoted(context).parts);
        if path.namespace.is_none() && path.parts.len() == 1 && context.len() == 2 {
            path.parts.splice(0..0, context);
        }
        let name = path.to_string();
        let unknown = || QueryError::unknown_keyspace(&name);
        let namespace = path.namespace.as_deref().unwrap_or("default");
        let parts: Vec<&str> = path.parts.iter().map(String::as_str).collect();
        let (bucket, scope, collection) = match (namespace, parts.as_slice()) {
            ("default", [bucket]) => (*bucket, "_default", "_default"),
            ("default", [bucket, scope, collection]) => (*bucket, *scope, *collection),
            _ => return Err(unknown()),
        };
        if !session.may_open(bucket) {
            return Err(QueryError::unauthorized(&format!("statements on {name}")));
        }
        let Some(found) = session.collection(bucket, scope, collection) else {
            // Without the bucket, the keyspace is unknown; with it, the scope or the collection.
            if session.has_scope(bucket, "_default") && !session.has_scope(bucket, scope) {
                return Err(QueryError::unknown_scope(bucket, scope));
            }
            return Err(unknown());
        };
        Ok(Self {
            session: Arc::clone(session),
            collection: found,
            name,
            preserve_expiry: execution.options.flag("preserve_expiry"),
            transaction: execution.transaction.clone(),
        })
    }

    /// Opens the collection of a document again, outside of a statement.
    pub(crate) fn of_id(
        session: &Arc<dyn Session>,
        bucket: &str,
        collection: u32,
    ) -> Result<Self, QueryError> {
        let found = session.collection_of_id(bucket, collection);
        Ok(Self {
            session: Arc::clone(session),
            collection: found.ok_or_else(|| QueryError::unknown_keyspace(bucket))?,
            name: bucket.to_owned(),
            preserve_expiry: false,
            transaction: None,
        })
    }

    /// The session.
    pub(crate) fn session(&self) -> &Arc<dyn Session> {
        &self.session
    }

    /// The name of the bucket.
    pub(crate) fn bucket(&self) -> &str {
        self.collection.bucket()
    }

    /// The id of the collection.
    pub(crate) fn collection(&self) -> u32 {
        self.collection.id()
    }

    /// The scope and the name of the collection.
    pub(crate) fn names(&self) -> Option<(String, String)> {
        self.collection.names()
    }

    /// The query indexes of the bucket.
    pub(crate) fn indexes(&self) -> &Indexes {
        self.collection.indexes()
    }

    /// How many seconds a document lives at most; zero means no limit.
    pub(crate) fn max_ttl(&self) -> u32 {
        self.collection.max_ttl()
    }

    /// A document, live or deleted, with its attributes.
    pub(crate) fn seen(&self, key: &str) -> Result<Seen, Status> {
        self.collection.look(key)
    }

    /// Rejects a write that a full bucket has no room for.
    pub(crate) fn check_room(&self) -> Result<(), Status> {
        self.collection.check_room()
    }

    /// Changes parts of a document, and returns its new CAS.
    pub(crate) fn mutate(&self, key: &str, change: Mutation<'_>) -> Result<u64, Status> {
        self.collection.mutate(key, change)
    }

    /// The document of a key, if it is there and is JSON or can be shown as such.
    pub(crate) fn read(&self, key: &str) -> Result<Option<Row>, QueryError> {
        if let Some(transaction) = &self.transaction {
            return self.read_in(transaction, key);
        }
        match self.collection.read(key) {
            Ok(row) => Ok(Some(row)),
            Err(Status::KeyNotFound) => Ok(None),
            Err(status) => Err(QueryError::new(
                12_008,
                format!("Error performing bulk get operation - cause: {status} for key {key}"),
            )),
        }
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> Result<Vec<String>, QueryError> {
        // The transaction of the statement may have staged inserts. The read tells.
        let keys = self.collection.keys(self.transaction.is_some());
        let mut keys = keys.map_err(|status| {
            QueryError::new(5000, format!("Index scan failed - cause: {status}"))
        })?;
        // Indexes leave out the records of transactions.
        keys.retain(|key| !key.starts_with("_txn:"));
        keys.sort_unstable();
        Ok(keys)
    }

    /// Writes a document, or stages it in the statement's transaction.
    pub(crate) fn store(
        &self,
        mode: WriteMode,
        key: &str,
        value: &Value,
    ) -> Result<Option<Row>, QueryError> {
        match &self.transaction {
            Some(transaction) => self.stage(transaction, mode, key, Some(value)),
            None => self.store_now(mode, key, value).map(Some),
        }
    }

    /// Removes a document, or stages its removal; false if it was not there.
    pub(crate) fn remove(&self, key: &str) -> Result<bool, QueryError> {
        if let Some(transaction) = &self.transaction {
            let removed = self.stage(transaction, WriteMode::Update, key, None)?;
            return Ok(removed.is_some());
        }
        self.remove_now(key)
    }

    /// Removes a document, whether there is a transaction or not; false if it was not there.
    pub(crate) fn remove_now(&self, key: &str) -> Result<bool, QueryError> {
        match self.collection.remove(key) {
            Ok(()) => Ok(true),
            Err(Status::KeyNotFound) => Ok(false),
            Err(status) => Err(self.failed("DELETE", key, status)),
        }
    }

    /// Writes a document, whether there is a transaction or not.
    pub(crate) fn store_now(
        &self,
        mode: WriteMode,
        key: &str,
        value: &Value,
    ) -> Result<Row, QueryError> {
        let statement = match mode {
            WriteMode::Insert => "INSERT",
            WriteMode::Upsert => "UPSERT",
            WriteMode::Update => "UPDATE",
        };
        let stored = self.check_room().and_then(|()| {
            self.collection
                .write(mode, key, value, self.preserve_expiry)
        });
        let cas = stored.map_err(|status| self.failed(statement, key, status))?;
        Ok(Row {
            key: key.to_owned(),
            cas,
            flags: JSON_FLAGS,
            expiry: 0,
            value: value.clone(),
        })
    }

    fn failed(&self, statement: &str, key: &str, status: Status) -> QueryError {
        let reason = match status {
            Status::KeyExists => serde_json::json!({
                "code": 17012,
                "key": "dml.statement.duplicatekey",
                "message": format!("Duplicate Key: {key}"),
            }),
            _ => serde_json::json!({"code": 12009, "message": status.to_string()}),
        };
        let message = format!(
            "DML Error: failed to perform {statement} on key {key} of {}: {status}",
            self.name
        );
        QueryError {
            reason: Some(reason),
            ..QueryError::new(12_009, message)
        }
    }
}
