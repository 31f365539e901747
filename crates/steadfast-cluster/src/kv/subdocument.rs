//! Subdocument commands.

use bytes::BytesMut;
use steadfast_wire::subdoc::{
    DocFlags, LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathFlags,
    PathMutationResult, SinglePath,
};
use steadfast_wire::{Encode, Entries, Frame, Opcode, Status};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use crate::store::document::StoredDocument;
use crate::store::subdocument::DocumentRules;
use crate::subdoc::attributes::Stamp;
use crate::subdoc::lookup;
use crate::subdoc::mutate::MutateError;

type LookupResults = Vec<Result<Vec<u8>, Status>>;

impl Session {
    pub(super) fn lookup(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let multi = frame.opcode() == Opcode::SubdocMultiLookup;
        let (specs, flags) = if multi {
            multi_lookup(frame)?
        } else {
            single_lookup(frame)?
        };
        let (results, cas, deleted) = self.look_up(frame, &specs, flags)?;
        if multi {
            self.answer_multi_lookup(frame, &results, cas, deleted, out)
        } else {
            let result = results.into_iter().next().ok_or(Status::InternalError)?;
            let value = result?;
            let status = if deleted {
                Status::SubdocSuccessDeleted
            } else {
                Status::Success
            };
            self.writer()
                .write(frame, status, KvResponse::with_value(&value).cas(cas), out);
            Ok(Flow::Done)
        }
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

    fn answer_multi_lookup(
        &self,
        frame: &Frame,
        results: &LookupResults,
        cas: u64,
        deleted: bool,
        out: &mut BytesMut,
    ) -> Handled {
        let mut body = BytesMut::new();
        for result in results {
            let entry = match result {
                Ok(value) => LookupResult {
                    status: Status::Success,
                    value,
                },
                Err(error) => LookupResult {
                    status: *error,
                    value: &[],
                },
            };
            entry.append_to(&mut body).map_err(|_| Status::TooBig)?;
        }
        let failed = results.iter().any(Result::is_err);
        let status = match (failed, deleted) {
            (false, false) => Status::Success,
            (false, true) => Status::SubdocSuccessDeleted,
            (true, false) => Status::SubdocMultiPathFailure,
            (true, true) => Status::SubdocMultiPathFailureDeleted,
        };
        self.writer()
            .write(frame, status, KvResponse::with_value(&body).cas(cas), out);
        Ok(Flow::Done)
    }

    pub(super) fn mutate(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let multi = frame.opcode() == Opcode::SubdocMultiMutation;
        let (specs, rules) = if multi {
            multi_mutation(frame)?
        } else {
            single_mutation(frame)?
        };
        let change = self.change(frame, &key)?;
        self.check_room(bucket)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let result = vbucket.mutate_parts(change, rules, &specs, self.context(frame, bucket));
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
                let status = if rules.access_deleted
                    && error == Status::SubdocDeletedDocumentCannotHaveValue
                {
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

fn multi_lookup(frame: &Frame) -> Result<(Vec<LookupSpec<'_>>, DocFlags), Status> {
    let extras = MultiExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
    let mut specs = Vec::new();
    for spec in Entries::<LookupSpec<'_>>::new(frame.value()) {
        let spec = spec.map_err(|_| Status::InvalidArguments)?;
        check_lookup(&spec)?;
        specs.push(spec);
        if specs.len() > lookup::MAX_PATHS {
            return Err(Status::SubdocInvalidCombo);
        }
    }
    Ok((specs, extras.doc_flags))
}

fn single_lookup(frame: &Frame) -> Result<(Vec<LookupSpec<'_>>, DocFlags), Status> {
    let single =
        SinglePath::decode(frame.extras(), frame.value()).map_err(|_| Status::InvalidArguments)?;
    let spec = LookupSpec {
        opcode: frame.opcode(),
        flags: single.flags,
        path: single.path,
    };
    check_lookup(&spec)?;
    Ok((vec![spec], single.doc_flags))
}

/// Rejects opcodes and flags that a lookup cannot have.
fn check_lookup(spec: &LookupSpec<'_>) -> Result<(), Status> {
    match spec.opcode {
        Opcode::SubdocGet | Opcode::SubdocExists | Opcode::SubdocGetCount | Opcode::Get => {}
        _ => return Err(Status::SubdocInvalidCombo),
    }
    if !(spec.flags - PathFlags::XATTR).is_empty() {
        return Err(Status::InvalidArguments);
    }
    Ok(())
}

fn multi_mutation(frame: &Frame) -> Result<(Vec<MutationSpec<'_>>, DocumentRules), Status> {
    let extras = MultiExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
    let mut specs = Vec::new();
    for spec in Entries::<MutationSpec<'_>>::new(frame.value()) {
        let spec = spec.map_err(|_| Status::InvalidArguments)?;
        check_mutation(&spec)?;
        specs.push(spec);
        if specs.len() > lookup::MAX_PATHS {
            return Err(Status::SubdocInvalidCombo);
        }
    }
    Ok((specs, document_rules(extras.doc_flags, extras.expiry)?))
}

fn single_mutation(frame: &Frame) -> Result<(Vec<MutationSpec<'_>>, DocumentRules), Status> {
    let single =
        SinglePath::decode(frame.extras(), frame.value()).map_err(|_| Status::InvalidArguments)?;
    let spec = MutationSpec {
        opcode: frame.opcode(),
        flags: single.flags,
        path: single.path,
        value: single.value,
    };
    check_mutation(&spec)?;
    Ok((vec![spec], document_rules(single.doc_flags, single.expiry)?))
}

/// Rejects opcodes and flags that a mutation cannot have.
fn check_mutation(spec: &MutationSpec<'_>) -> Result<(), Status> {
    match spec.opcode {
        Opcode::SubdocDictAdd
        | Opcode::SubdocDictUpsert
        | Opcode::SubdocDelete
        | Opcode::SubdocReplace
        | Opcode::SubdocArrayPushLast
        | Opcode::SubdocArrayPushFirst
        | Opcode::SubdocArrayInsert
        | Opcode::SubdocArrayAddUnique
        | Opcode::SubdocCounter
        | Opcode::Set
        | Opcode::Delete => {}
        _ => return Err(Status::SubdocInvalidCombo),
    }
    if !(spec.flags - PathFlags::all()).is_empty() {
        return Err(Status::InvalidArguments);
    }
    Ok(())
}

fn document_rules(flags: DocFlags, expiry: Option<u32>) -> Result<DocumentRules, Status> {
    let known = DocFlags::all() - DocFlags::REPLICA_READ;
    let both = DocFlags::UPSERT | DocFlags::INSERT;
    if !(flags - known).is_empty() || flags.contains(both) {
        return Err(Status::InvalidArguments);
    }
    Ok(DocumentRules {
        create: flags.contains(DocFlags::UPSERT),
        add: flags.contains(DocFlags::INSERT),
        access_deleted: flags.contains(DocFlags::ACCESS_DELETED),
        create_as_deleted: flags.contains(DocFlags::CREATE_AS_DELETED),
        revive: flags.contains(DocFlags::REVIVE),
        expiry,
    })
}
