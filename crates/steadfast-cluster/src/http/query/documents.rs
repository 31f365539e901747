//! Documents of a collection, for statements.

use std::sync::Arc;

use serde_json::Value;
use steadfast_sqlpp::{DocumentStore, Indexes, Mutation, Row, Seen, WriteMode};
use steadfast_wire::{DocumentKey, Opcode, Status, leb128, vbucket};

use crate::bucket::Bucket;
use crate::http::HttpSession;
use crate::journal::{Origin, split_key};
use crate::store::document::{DocumentBody, JSON_FLAGS, StoredDocument};
use crate::store::operations::{StoreMode, WriteRequest};
use crate::store::vbucket::{StoreContext, Vbucket};
use crate::store::write::Written;
use crate::subdoc::mutate::MutateError;
use crate::topology::NodeId;

/// The documents of a collection.
pub(super) struct Documents {
    session: HttpSession,
    bucket: Arc<Bucket>,
    collection: u32,
}

impl Documents {
    pub(super) fn shared(
        session: &HttpSession,
        bucket: Arc<Bucket>,
        collection: u32,
    ) -> Arc<dyn DocumentStore> {
        Arc::new(Self {
            session: session.clone(),
            bucket,
            collection,
        })
    }

    fn full_key(&self, key: &str) -> Vec<u8> {
        [leb128::encode(self.collection).as_ref(), key.as_bytes()].concat()
    }

    /// Does something with the vbucket of a key, on behalf of the node that serves it.
    fn at<T>(
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
        let is_up = |node: &NodeId| {
            let node = self.session.shared.node(*node);
            node.is_some_and(|node| node.is_up())
        };
        vbucket.active().filter(is_up).ok_or(Status::NotMyVbucket)
    }
}

impl DocumentStore for Documents {
    fn bucket(&self) -> &str {
        &self.bucket.name
    }

    fn id(&self) -> u32 {
        self.collection
    }

    fn names(&self) -> Option<(String, String)> {
        self.bucket.manifest().names(self.collection)
    }

    fn indexes(&self) -> &Indexes {
        &self.bucket.indexes
    }

    fn max_ttl(&self) -> u32 {
        self.bucket.max_ttl(self.collection)
    }

    fn keys(&self, staged_too: bool) -> Result<Vec<String>, Status> {
        let now = self.session.shared.clock.now();
        let counts = |document: &StoredDocument| {
            document.is_live(now) || (staged_too && document.is_staged_insert())
        };
        let mut keys = Vec::new();
        for id in 0..self.bucket.settings.vbuckets {
            let Ok(vbucket) = self.bucket.vbucket(id) else {
                continue;
            };
            let active = self.serving(&vbucket)?;
            let Ok(copy) = vbucket.active_copy(active) else {
                continue;
            };
            keys.extend(
                copy.iter()
                    .filter(|(_, document)| counts(document))
                    .map(|(key, _)| split_key(key))
                    .filter(|(collection, _)| *collection == self.collection)
                    .map(|(_, key)| String::from_utf8_lossy(key).into_owned()),
            );
        }
        Ok(keys)
    }

    fn read(&self, key: &str) -> Result<Row, Status> {
        let full_key = self.full_key(key);
        self.at(key, Opcode::Get, |vbucket, context| {
            let (document, _) = vbucket.get(&full_key, context.origin.node, context.now)?;
            to_row(key, document)
        })
    }

    fn look(&self, key: &str) -> Result<Seen, Status> {
        let full_key = self.full_key(key);
        self.at(key, Opcode::Get, |vbucket, context| {
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
        })
    }

    /// The bucket may be looked through for expired documents, which takes every lock in turn.
    fn check_room(&self) -> Result<(), Status> {
        match self.bucket.is_full(self.session.shared.clock.now()) {
            true => Err(Status::OutOfMemory),
            false => Ok(()),
        }
    }

    fn write(
        &self,
        mode: WriteMode,
        key: &str,
        value: &Value,
        preserve_expiry: bool,
    ) -> Result<u64, Status> {
        let (mode, opcode) = match mode {
            WriteMode::Insert => (StoreMode::Add, Opcode::Add),
            WriteMode::Upsert => (StoreMode::Set, Opcode::Set),
            WriteMode::Update => (StoreMode::Replace, Opcode::Replace),
        };
        let full_key = self.full_key(key);
        let written = self.at(key, opcode, |vbucket, context| {
            if key.is_empty() || key.len() > DocumentKey::MAX_ID_LEN {
                return Err(Status::InvalidArguments);
            }
            let body = DocumentBody::plain(value.to_string().into_bytes())?;
            let change = WriteRequest {
                preserve_expiry,
                ..unconditional(&full_key)
            };
            vbucket.store(mode, change, body, JSON_FLAGS, self.max_ttl(), context)
        });
        written.and_then(cas)
    }

    fn remove(&self, key: &str) -> Result<(), Status> {
        let full_key = self.full_key(key);
        let removed = self.at(key, Opcode::Delete, |vbucket, context| {
            vbucket.remove(unconditional(&full_key), context)
        });
        removed.and_then(cas).map(|_| ())
    }

    fn mutate(&self, key: &str, change: Mutation<'_>) -> Result<u64, Status> {
        let full_key = self.full_key(key);
        let request = WriteRequest {
            cas: change.cas,
            preserve_expiry: change.preserve_expiry,
            ..unconditional(&full_key)
        };
        self.at(
            key,
            Opcode::SubdocMultiMutation,
            |vbucket, context| match vbucket.mutate_parts(
                request,
                change.extras,
                change.specs,
                context,
            ) {
                Err(MutateError::At(_, status) | MutateError::Whole(status)) => Err(status),
                Ok(done) => cas(done.written),
            },
        )
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

fn cas(written: Written) -> Result<u64, Status> {
    match written {
        Written::Done(receipt) => Ok(receipt.cas),
        // Only a durable write waits, and none is asked for.
        Written::Pending(_) => Err(Status::SyncWriteInProgress),
    }
}

fn to_row(key: &str, document: &StoredDocument) -> Result<Row, Status> {
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
