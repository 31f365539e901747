//! Subdocument commands.

use bytes::BytesMut;
use steadfast_wire::subdoc::{
    DocFlags, LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathFlags,
    PathMutationResult, SinglePath,
};
use steadfast_wire::{DecodeError, Encode, Entries, Frame, Opcode, Status};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use super::subdocument_rules::{check_lookup_flags, check_mutation_flags, check_single_mutation};
use crate::store::document::StoredDocument;
use crate::subdoc::attributes::Stamp;
use crate::subdoc::lookup;
use crate::subdoc::mutate::MutateError;

type LookupResults = Vec<Result<Vec<u8>, Status>>;

impl Session {
    pub(super) fn lookup(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let many = Entries::new(frame.value());
        let (specs, extras) = read_specs(frame, many, |single| LookupSpec {
            opcode: frame.opcode(),
            flags: single.flags,
            path: single.path,
        })?;
        check_lookup_flags(extras.doc_flags)?;
        self.check_lookups(&specs)?;
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
            let looks_into_locked = self.shared.version.rules().looks_into_locked;
            if vbucket.is_locked(&key, self.now) && !looks_into_locked {
                return Err(Status::Locked);
            }
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
        let (mut specs, extras) = read_specs(frame, many, |single| MutationSpec {
            opcode: frame.opcode(),
            flags: single.flags,
            path: single.path,
            value: single.value,
        })?;
        check_mutation_flags(extras.doc_flags, frame.header().cas)?;
        if !multi {
            check_single_mutation(extras.doc_flags, specs[0].flags)?;
        }
        self.check_mutations(&specs)?;
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
) -> Result<(Vec<S>, MultiExtras), Status> {
    let mut specs = Vec::new();
    if is_multi(frame) {
        let extras = MultiExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
        for spec in many {
            specs.push(spec.map_err(|_| Status::InvalidArguments)?);
            // The check of the paths rejects the first that is too many.
            if specs.len() > lookup::MAX_PATHS {
                break;
            }
        }
        return Ok((specs, extras));
    }
    let single =
        SinglePath::decode(frame.extras(), frame.value()).map_err(|_| Status::InvalidArguments)?;
    let (expiry, doc_flags) = (single.expiry, single.doc_flags);
    specs.push(one(single));
    let extras = MultiExtras {
        expiry,
        doc_flags,
        ..MultiExtras::default()
    };
    Ok((specs, extras))
}
