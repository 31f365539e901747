//! Subdocument mutations as an operation on the active copy.

use bytes::Bytes;
use serde_json::Value;
use steadfast_wire::subdoc::MutationSpec;
use steadfast_wire::{Datatype, Status};

use super::document::StoredDocument;
use super::expiry;
use super::operations::WriteRequest;
use super::vbucket::{StoreContext, Vbucket};
use super::write::Written;
use crate::subdoc::attributes::Stamp;
use crate::subdoc::mutate::{self, MutateError};

/// Flags of a subdocument mutation for the whole document.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DocumentRules {
    /// Create it if it is missing.
    pub create: bool,
    /// It must be missing.
    pub add: bool,
    /// A tombstone will do.
    pub access_deleted: bool,
    /// What is created is a tombstone.
    pub create_as_deleted: bool,
    /// A tombstone becomes a live document.
    pub revive: bool,
    /// Set this expiry, as on the wire.
    pub expiry: Option<u32>,
}

/// The result of a subdocument mutation.
#[derive(Debug)]
pub(crate) struct SubdocWritten {
    /// The result of the write.
    pub written: Written,
    /// The values that parts gave back.
    pub values: Vec<(u8, Vec<u8>)>,
    /// Whether the document is a tombstone.
    pub deleted: bool,
}

impl Vbucket {
    /// Changes parts of a document, all or nothing.
    pub(crate) fn mutate_parts(
        &mut self,
        change: WriteRequest<'_>,
        rules: DocumentRules,
        specs: &[MutationSpec<'_>],
        context: StoreContext<'_>,
    ) -> Result<SubdocWritten, MutateError> {
        let start = self.document_to_mutate(change, rules, specs, context)?;
        let (cas, seqno) = self.next_stamp(context);
        let uuid = self.active_copy(context.origin.node)?.uuid();
        let stamp = Stamp {
            cas,
            seqno,
            uuid,
            now: context.now.seconds(),
        };
        let was_deleted = start.deleted;
        let mutated = mutate::run(specs, &start, stamp)?;
        let mut document = mutated.document;
        if document.deleted && !was_deleted {
            // The request removed the whole document.
            document.xattrs = document.system_xattrs();
            document.value = Bytes::new();
            document.datatype = Datatype::RAW;
            document.expiry = 0;
        } else if let Some(wire) = rules.expiry.filter(|_| !keeps_expiry(change, &start)) {
            document.expiry = expiry::absolute(wire, context.now);
        }
        let deleted = document.deleted;
        let written = self.write(change.key, document, change.durability, context)?;
        Ok(SubdocWritten {
            written,
            values: mutated.values,
            deleted: deleted && was_deleted,
        })
    }

    fn document_to_mutate(
        &self,
        change: WriteRequest<'_>,
        rules: DocumentRules,
        specs: &[MutationSpec<'_>],
        context: StoreContext<'_>,
    ) -> Result<StoredDocument, MutateError> {
        let without_cas = WriteRequest { cas: 0, ..change };
        let live = match self.writable(change, context) {
            // With a CAS, a tombstone may still be meant.
            Err(Status::KeyNotFound) => self.writable(without_cas, context)?,
            other => other?,
        };
        if let Some(live) = live {
            return if rules.add {
                Err(Status::KeyExists.into())
            } else if rules.revive {
                Err(Status::SubdocCanOnlyReviveDeletedDocuments.into())
            } else {
                Ok(live.clone())
            };
        }
        let copy = self.active_copy(context.origin.node)?;
        let tombstone = copy.get(change.key).filter(|document| document.deleted);
        if let Some(tombstone) = tombstone.filter(|_| rules.access_deleted && !rules.add) {
            if change.cas != 0 && change.cas != tombstone.cas {
                return Err(Status::KeyExists.into());
            }
            let mut start = tombstone.clone();
            if rules.revive {
                start.deleted = false;
                start.value = Bytes::from_static(b"{}");
                start.datatype = Datatype::JSON;
            }
            return Ok(start);
        }
        if change.cas != 0 || !(rules.create || rules.add) {
            return Err(Status::KeyNotFound.into());
        }
        Ok(new_document(rules, specs))
    }
}

fn keeps_expiry(change: WriteRequest<'_>, start: &StoredDocument) -> bool {
    change.preserve_expiry && start.cas != 0
}

fn new_document(rules: DocumentRules, specs: &[MutationSpec<'_>]) -> StoredDocument {
    if rules.create_as_deleted {
        return StoredDocument {
            deleted: true,
            ..StoredDocument::default()
        };
    }
    let body = match mutate::initial_body(specs) {
        Value::Array(_) => "[]",
        _ => "{}",
    };
    StoredDocument {
        value: Bytes::from_static(body.as_bytes()),
        datatype: Datatype::JSON,
        ..StoredDocument::default()
    }
}
