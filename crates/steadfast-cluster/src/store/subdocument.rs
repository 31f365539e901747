//! Subdocument mutations as an operation on the active copy.

use bytes::Bytes;
use serde_json::Value;
use steadfast_wire::subdoc::{DocFlags, MultiExtras, MutationSpec};
use steadfast_wire::{Datatype, Status};

use super::document::StoredDocument;
use super::expiry;
use super::operations::WriteRequest;
use super::vbucket::{StoreContext, Vbucket};
use super::write::Written;
use crate::subdoc::attributes::Stamp;
use crate::subdoc::mutate::{self, MutateError};

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
        extras: MultiExtras,
        specs: &[MutationSpec<'_>],
        context: StoreContext<'_>,
    ) -> Result<SubdocWritten, MutateError> {
        let start = self.document_to_mutate(change, extras.doc_flags, specs, context)?;
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
        } else if !document.deleted {
            if !keeps_expiry(change, &start) {
                document.expiry = expiry::absolute(extras.expiry.unwrap_or(0), context.now);
            }
            document.flags = extras.user_flags.unwrap_or(document.flags);
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
        flags: DocFlags,
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
            return if flags.contains(DocFlags::INSERT) {
                Err(Status::KeyExists.into())
            } else if flags.contains(DocFlags::REVIVE) {
                Err(Status::SubdocCanOnlyReviveDeletedDocuments.into())
            } else {
                Ok(live.clone())
            };
        }
        let copy = self.active_copy(context.origin.node)?;
        let tombstone = copy.get(change.key).filter(|document| document.deleted);
        let sees_tombstones = flags.contains(DocFlags::ACCESS_DELETED);
        if let Some(tombstone) = tombstone.filter(|_| sees_tombstones) {
            if flags.contains(DocFlags::INSERT) {
                // Another transaction may have staged its insert here.
                return Err(Status::KeyExists.into());
            }
            if change.cas != 0 && change.cas != tombstone.cas {
                return Err(Status::KeyExists.into());
            }
            let mut start = tombstone.clone();
            if flags.contains(DocFlags::REVIVE) {
                start.deleted = false;
                start.value = Bytes::from_static(b"{}");
                start.datatype = Datatype::JSON;
            }
            return Ok(start);
        }
        if change.cas != 0 || !flags.intersects(DocFlags::UPSERT | DocFlags::INSERT) {
            return Err(Status::KeyNotFound.into());
        }
        Ok(new_document(flags, specs))
    }
}

fn keeps_expiry(change: WriteRequest<'_>, start: &StoredDocument) -> bool {
    change.preserve_expiry && start.cas != 0
}

fn new_document(flags: DocFlags, specs: &[MutationSpec<'_>]) -> StoredDocument {
    if flags.contains(DocFlags::CREATE_AS_DELETED) {
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
