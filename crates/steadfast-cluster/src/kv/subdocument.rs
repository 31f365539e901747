//! Subdocument commands.

use bytes::BytesMut;
use steadfast_wire::subdoc::{
    DocFlags, LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathFlags,
    PathMutationResult, SinglePath,
};
use steadfast_wire::{DecodeError, Encode, Entries, Frame, Opcode, Status};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use crate::store::document::StoredDocument;
use crate::subdoc::attributes::Stamp;
use crate::subdoc::lookup;
use crate::subdoc::mutate::MutateError;

type LookupResults = Vec<Result<Vec<u8>, Status>>;

impl Session {
    pub(super) fn lookup(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let many = Entries::new(frame.value());
        let (specs, extras) = read_specs(
            frame,
            many,
            |single| LookupSpec {
                opcode: frame.opcode(),
                flags: single.flags,
                path: single.path,
            },
            check_lookup,
        )?;
        let (mut results, cas, deleted) = self.look_up(frame, &specs, extras.doc_flags)?;
        let (value, failed) = if is_multi(frame) {
            lookup_values(&results)?
        } else {
            (results.pop().ok_or(Status::InternalError)??, false)
        };
        let status = match (failed, deleted) {
            (false, false) => Status::Success,
            (false, true) => Status::SubdocSuccessDeleted,
            (true, false) => Status::SubdocMultiPathFailure,
            (true, true) => Status::SubdocMultiPathFailureDeleted,
        };
        self.writer()
            .write(frame, status, KvResponse::with_value(&value).cas(cas), out);
        Ok(Flow::Done)
    }

    fn look_up(
        &self,
        frame: &Frame,
        specs: &[LookupSpec<'_>],
        flags: DocFlags,
    ) -> Result<(LookupResults, u64, bool), Status> {
        let key = self.key(frame)?;
        let bucket = self.bucket()?;
        let vbucket = bucket.vbucket(frame.vbucket())?;
        let context = self.context(frame, bucket);
        let with_tombstones = flags.contains(DocFlags::ACCESS_DELETED);
        let visible = |document: &&StoredDocument| {
            document.is_live(self.now) || (with_tombstones && document.deleted)
        };
        let (copy, document, cas) = if flags.contains(DocFlags::REPLICA_READ) {
            let copy = vbucket.replica_copy(self.node.id)?;
            let document = copy.get(&key).filter(visible).ok_or(Status::KeyNotFound)?;
            (copy, document, document.cas)
        } else {
            let (document, cas) = vbucket.get_with_tombstones(&key, context)?;
            let document = Some(document).filter(visible).ok_or(Status::KeyNotFound)?;
            (vbucket.active_copy(self.node.id)?, document, cas)
        };
        let stamp = Stamp {
            cas,
            seqno: document.seqno,
            uuid: copy.uuid(),
            now: self.now.seconds(),
        };
        Ok((lookup::run(specs, document, stamp)?, cas, document.deleted))
    }

    pub(super) fn mutate(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let multi = is_multi(frame);
        let many = Entries::new(frame.value());
        let (mut specs, extras) = read_specs(
            frame,
            many,
            |single| MutationSpec {
                opcode: frame.opcode(),
                flags: single.flags,
                path: single.path,
                value: single.value,
            },
            check_mutation,
        )?;
        check_doc_flags(extras.doc_flags)?;
        if extras
            .doc_flags
            .intersects(DocFlags::UPSERT | DocFlags::INSERT)
        {
            // A new document has none of the parents.
            for spec in &mut specs {
                spec.flags |= PathFlags::CREATE_PARENTS;
            }
        }
        let expiry = self.limit_expiry(bucket, &key, extras.expiry.unwrap_or(0));
        let extras = MultiExtras {
            expiry: Some(expiry),
            ..extras
        };
        let change = self.change(frame, &key)?;
        self.check_room(bucket)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let result = vbucket.mutate_parts(change, extras, &specs, self.context(frame, bucket));
        bucket.account(&mut vbucket);
        drop(vbucket);
        match result {
            Ok(done) => {
                let status = if done.deleted {
                    Status::SubdocSuccessDeleted
                } else {
                    Status::Success
                };
                let value = mutation_values(multi, &done.values)?;
                Ok(self.written(frame, done.written, status, value, out))
            }
            Err(MutateError::At(index, error)) if multi => {
                let body = MutationOutcome::failure_body(index, error);
                let with_tombstones = extras.doc_flags.contains(DocFlags::ACCESS_DELETED);
                let status =
                    if with_tombstones && error == Status::SubdocDeletedDocumentCannotHaveValue {
                        Status::SubdocMultiPathFailureDeleted
                    } else {
                        Status::SubdocMultiPathFailure
                    };
                self.writer()
                    .write(frame, status, KvResponse::with_value(&body), out);
                Ok(Flow::Done)
            }
            Err(MutateError::At(_, status) | MutateError::Whole(status)) => Err(status),
        }
    }
}

/// Encodes the results of several lookups, and returns whether one failed.
fn lookup_values(results: &LookupResults) -> Result<(Vec<u8>, bool), Status> {
    let mut body = BytesMut::new();
    for result in results {
        let (status, value) = match result {
            Ok(value) => (Status::Success, &value[..]),
            Err(error) => (*error, &[][..]),
        };
        let entry = LookupResult { status, value };
        entry.append_to(&mut body).map_err(|_| Status::TooBig)?;
    }
    Ok((body.to_vec(), results.iter().any(Result::is_err)))
}

fn mutation_values(multi: bool, values: &[(u8, Vec<u8>)]) -> Result<Vec<u8>, Status> {
    if !multi {
        return Ok(values
            .first()
            .map(|(_, value)| value.clone())
            .unwrap_or_default());
    }
    let mut body = BytesMut::new();
    for (index, value) in values {
        PathMutationResult {
            index: *index,
            status: Status::Success,
            value,
        }
        .append_to(&mut body)
        .map_err(|_| Status::TooBig)?;
    }
    Ok(body.to_vec())
}

fn is_multi(frame: &Frame) -> bool {
    use Opcode::{SubdocMultiLookup, SubdocMultiMutation};
    matches!(frame.opcode(), SubdocMultiLookup | SubdocMultiMutation)
}

/// Reads the specs of a request with one path or with many, and the flags of the document.
fn read_specs<'a, S>(
    frame: &'a Frame,
    many: impl Iterator<Item = Result<S, DecodeError>>,
    one: impl FnOnce(SinglePath<'a>) -> S,
    check: impl Fn(&S) -> Result<(), Status>,
) -> Result<(Vec<S>, MultiExtras), Status> {
    let mut specs = Vec::new();
    if is_multi(frame) {
        let extras = MultiExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
        for spec in many {
            let spec = spec.map_err(|_| Status::InvalidArguments)?;
            check(&spec)?;
            specs.push(spec);
            if specs.len() > lookup::MAX_PATHS {
                return Err(Status::SubdocInvalidCombo);
            }
        }
        return Ok((specs, extras));
    }
    let single =
        SinglePath::decode(frame.extras(), frame.value()).map_err(|_| Status::InvalidArguments)?;
    let (expiry, doc_flags) = (single.expiry, single.doc_flags);
    specs.push(one(single));
    check(&specs[0])?;
    let extras = MultiExtras {
        expiry,
        doc_flags,
        ..MultiExtras::default()
    };
    Ok((specs, extras))
}

/// Rejects opcodes and flags that a lookup cannot have.
fn check_lookup(spec: &LookupSpec<'_>) -> Result<(), Status> {
    match spec.opcode {
        Opcode::SubdocGet | Opcode::SubdocExists | Opcode::SubdocGetCount | Opcode::Get => {}
        _ => return Err(Status::SubdocInvalidCombo),
    }
    if !(spec.flags - (PathFlags::XATTR | PathFlags::BINARY)).is_empty() {
        return Err(Status::InvalidArguments);
    }
    Ok(())
}

/// Rejects opcodes that a mutation cannot have, and flags that an opcode cannot have.
fn check_mutation(spec: &MutationSpec<'_>) -> Result<(), Status> {
    const XATTR: PathFlags = PathFlags::XATTR;
    const VALUE: PathFlags = XATTR
        .union(PathFlags::EXPAND_MACROS)
        .union(PathFlags::BINARY);
    let allowed = match spec.opcode {
        Opcode::SubdocDictAdd
        | Opcode::SubdocDictUpsert
        | Opcode::SubdocArrayPushLast
        | Opcode::SubdocArrayPushFirst => VALUE | PathFlags::CREATE_PARENTS,
        Opcode::SubdocReplace | Opcode::SubdocArrayInsert => VALUE,
        // A macro differs each time, so "unique" would say nothing.
        Opcode::SubdocArrayAddUnique => XATTR | PathFlags::BINARY | PathFlags::CREATE_PARENTS,
        Opcode::SubdocCounter => XATTR | PathFlags::CREATE_PARENTS,
        Opcode::SubdocReplaceBodyWithXattr => XATTR | PathFlags::BINARY,
        Opcode::SubdocDelete | Opcode::Set | Opcode::Delete => XATTR,
        _ => return Err(Status::SubdocInvalidCombo),
    };
    if !(spec.flags - allowed).is_empty() {
        return Err(Status::InvalidArguments);
    }
    Ok(())
}

/// Rejects flags of the document that a mutation cannot have.
fn check_doc_flags(flags: DocFlags) -> Result<(), Status> {
    let known = DocFlags::all() - DocFlags::REPLICA_READ;
    let both = DocFlags::UPSERT | DocFlags::INSERT;
    if !(flags - known).is_empty() || flags.contains(both) {
        return Err(Status::InvalidArguments);
    }
    Ok(())
}
