//! State of a connection, and dispatch of its commands.

use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use tokio::time::Instant;

use bytes::BytesMut;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::{DocumentKey, ErrorBody, Feature, Frame, Opcode, Status};

use super::opcodes::CommandRules;
use super::response::{KvResponse, ResponseWriter};
use super::validate::Framing;
use crate::bucket::Bucket;
use crate::clock::Now;
use crate::cluster::node::ServerNode;
use crate::cluster::shared::Shared;
use crate::journal::Origin;
use crate::sasl::scram::ScramServer;
use crate::store::durability::DurabilityRequirement;
use crate::store::operations::WriteRequest;
use crate::store::vbucket::StoreContext;
use crate::store::write::Written;
use crate::topology::config::NO_VERSION;
use crate::users::User;
use steadfast_wire::hello::FeatureSet;

/// An answer that comes later.
pub(super) type Later = Pin<Box<dyn Future<Output = BytesMut> + Send>>;

/// The state of a connection after a command.
pub(super) enum Flow {
    /// The command is answered.
    Done,
    /// The command is answered, and the connection closes.
    Close,
    /// The command is answered when this is ready.
    Wait(Later),
}

/// The result of a command: written, or a status to write.
pub(super) type Handled = Result<Flow, Status>;

/// Ids of collections that no client can use.
const RESERVED_COLLECTIONS: RangeInclusive<u32> = 1..=7;

/// The state of one connection, without its socket.
pub(super) struct Session {
    pub shared: Arc<Shared>,
    pub node: Arc<ServerNode>,
    pub id: u64,
    pub features: FeatureSet,
    pub user: Option<Arc<User>>,
    pub sasl: Option<ScramServer>,
    pub bucket: Option<Arc<Bucket>>,
    /// The newest map that the client is known to have.
    pub known_map: ConfigVersion,
    pub received: Instant,
    pub now: Now,
}

impl Session {
    pub(super) fn new(shared: Arc<Shared>, node: Arc<ServerNode>, id: u64) -> Self {
        let now = shared.clock.now();
        Self {
            shared,
            node,
            id,
            features: FeatureSet::default(),
            user: None,
            sasl: None,
            bucket: None,
            known_map: NO_VERSION,
            received: Instant::now(),
            now,
        }
    }

    /// Executes a command and writes its answer, unless that comes later.
    pub(super) fn execute(&mut self, frame: &Frame, out: &mut BytesMut) -> Flow {
        // A command may come before the connection notices. It must not be acknowledged.
        if self.has_lost_its_bucket() {
            return Flow::Close;
        }
        match self.dispatch(frame, out) {
            Ok(flow) => flow,
            Err(status) => {
                self.refuse(frame, status, out);
                Flow::Done
            }
        }
    }

    fn dispatch(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let opcode = frame.opcode();
        let rules = self.rules(opcode);
        if self.user.is_none() && !rules.before_login {
            return Err(Status::AccessError);
        }
        self.validate(frame, &rules)?;
        match opcode {
            Opcode::Get => self.get(frame, out),
            Opcode::Set | Opcode::Add | Opcode::Replace => self.store(frame, out),
            Opcode::Delete => self.remove(frame, out),
            Opcode::Increment | Opcode::Decrement => self.count(frame, out),
            Opcode::Append | Opcode::Prepend => self.concatenate(frame, out),
            Opcode::Touch => self.touch(frame, out),
            Opcode::GetAndTouch => self.get_and_touch(frame, out),
            Opcode::GetLocked => self.get_locked(frame, out),
            Opcode::UnlockKey => self.unlock(frame, out),
            Opcode::GetReplica => self.get_replica(frame, out),
            Opcode::GetMeta => self.get_meta(frame, out),
            Opcode::GetRandomKey => self.get_random_key(frame, out),
            Opcode::Observe => self.observe(frame, out),
            Opcode::ObserveSeqno => self.observe_seqno(frame, out),
            Opcode::SubdocGet
            | Opcode::SubdocExists
            | Opcode::SubdocGetCount
            | Opcode::SubdocMultiLookup => self.lookup(frame, out),
            Opcode::SubdocDictAdd
            | Opcode::SubdocDictUpsert
            | Opcode::SubdocDelete
            | Opcode::SubdocReplace
            | Opcode::SubdocArrayPushLast
            | Opcode::SubdocArrayPushFirst
            | Opcode::SubdocArrayInsert
            | Opcode::SubdocArrayAddUnique
            | Opcode::SubdocCounter
            | Opcode::SubdocMultiMutation => self.mutate(frame, out),
            Opcode::RangeScanCreate
            | Opcode::RangeScanContinue
            | Opcode::RangeScanCancel
                if !self.shared.version.rules().has_range_scans =>
            {
                Err(Status::UnknownCommand)
            }
            Opcode::RangeScanCreate => self.create_scan(frame, out),
            Opcode::RangeScanContinue => self.continue_scan(frame, out),
            Opcode::RangeScanCancel => self.cancel_scan(frame, out),
            Opcode::GetCollectionsManifest => self.get_manifest(frame, out),
            Opcode::GetCollectionId => self.get_collection_id(frame, out),
            Opcode::GetScopeId => self.get_scope_id(frame, out),
            Opcode::GetClusterConfig => self.get_cluster_config(frame, out),
            Opcode::Hello => self.hello(frame, out),
            Opcode::SaslListMechs => self.sasl_list(frame, out),
            Opcode::SaslAuth => self.sasl_auth(frame, out),
            Opcode::SaslStep => self.sasl_step(frame, out),
            Opcode::SelectBucket => self.select_bucket(frame, out),
            Opcode::GetErrorMap => self.get_error_map(frame, out),
            Opcode::Stat => self.stat(frame, out),
            Opcode::Noop => self.done(frame, KvResponse::default(), out),
            Opcode::Version => {
                let value = concat!(env!("CARGO_PKG_VERSION"), "-steadfast").as_bytes();
                self.done(frame, KvResponse::with_value(value), out)
            }
            Opcode::Quit => {
                self.done(frame, KvResponse::default(), out)?;
                Ok(Flow::Close)
            }
            Opcode::Unknown(_) if is_dcp(opcode) => Err(Status::NotSupported),
            Opcode::GetEx
            | Opcode::GetExReplica
            // Only inside of a multi-path mutation.
            | Opcode::SubdocReplaceBodyWithXattr
            | Opcode::Unknown(_) => Err(Status::UnknownCommand),
        }
    }

    /// Writes a refusal with what belongs to its status: a map, a manifest's number, a sentence.
    fn refuse(&mut self, frame: &Frame, status: Status, out: &mut BytesMut) {
        let text = |text: &str| {
            Some(ErrorBody {
                context: Some(text.to_owned()),
                ..ErrorBody::default()
            })
        };
        let body = match status {
            Status::NotMyVbucket => return self.refuse_vbucket(frame, out),
            Status::UnknownCollection | Status::UnknownScope => {
                self.bucket.as_ref().map(|bucket| ErrorBody {
                    manifest_uid: Some(bucket.manifest().uid),
                    ..ErrorBody::default()
                })
            }
            Status::AccessError => text("this user may not do that"),
            // A name that cannot be one is rejected without a word.
            Status::InvalidArguments
                if matches!(frame.opcode(), Opcode::GetCollectionId | Opcode::GetScopeId) =>
            {
                None
            }
            Status::InvalidArguments => text("the request is malformed"),
            Status::NotSupported if is_dcp(frame.opcode()) => {
                text("not supported by this cluster: DCP")
            }
            _ => None,
        };
        self.writer().write_error(frame, status, body, out);
    }

    /// Writes a successful answer.
    pub(super) fn done(
        &self,
        frame: &Frame,
        response: KvResponse<'_>,
        out: &mut BytesMut,
    ) -> Handled {
        self.writer().write(frame, Status::Success, response, out);
        Ok(Flow::Done)
    }

    /// Writes the answer to a mutation, or leaves it for when its copies are ready.
    pub(super) fn written(
        &self,
        frame: &Frame,
        written: Written,
        status: Status,
        value: Vec<u8>,
        out: &mut BytesMut,
    ) -> Flow {
        let writer = self.writer();
        match written {
            Written::Done(receipt) => {
                writer.write_receipt(frame, status, receipt, &value, out);
                Flow::Done
            }
            Written::Pending(pending) => {
                let (frame, bucket) = (frame.clone(), self.bucket.clone());
                Flow::Wait(Box::pin(async move {
                    let mut receipt = pending.receipt;
                    let mut answer = BytesMut::new();
                    let decided = match tokio::time::timeout(pending.timeout, &mut receipt).await {
                        Ok(decided) => decided.ok(),
                        Err(_) => {
                            let vbucket = bucket
                                .as_ref()
                                .map(|bucket| bucket.vbucket(frame.vbucket()));
                            if let Some(Ok(mut vbucket)) = vbucket {
                                vbucket.abort(&pending.key, pending.id);
                            }
                            // It may have been decided in the moment before.
                            receipt.try_recv().ok()
                        }
                    };
                    match decided {
                        Some(receipt) => {
                            writer.write_receipt(&frame, status, receipt, &value, &mut answer);
                        }
                        None => {
                            writer.write_error(
                                &frame,
                                Status::SyncWriteAmbiguous,
                                None,
                                &mut answer,
                            );
                        }
                    }
                    answer
                }))
            }
        }
    }

    /// Returns the rules of an opcode in this version.
    pub(super) fn rules(&self, opcode: Opcode) -> CommandRules {
        CommandRules::of(opcode, self.shared.version)
    }

    pub(super) fn writer(&self) -> ResponseWriter {
        ResponseWriter {
            features: self.features,
            received: self.received,
        }
    }

    /// Returns whether the bucket that was selected is dropped.
    pub(super) fn has_lost_its_bucket(&self) -> bool {
        let bucket = self.bucket.as_ref();
        bucket.is_some_and(|bucket| bucket.is_dropped())
    }

    /// The bucket that was selected, if the node has its data.
    pub(super) fn bucket(&self) -> Result<&Arc<Bucket>, Status> {
        let bucket = self.bucket.as_ref().ok_or(Status::NoBucket)?;
        match self.shared.is_warming_up(self.node.id) {
            true => Err(Status::TemporaryFailure),
            false => Ok(bucket),
        }
    }

    /// The bucket, to write in.
    pub(super) fn bucket_to_write(&self) -> Result<&Arc<Bucket>, Status> {
        let bucket = self.bucket()?;
        if self.user.as_ref().is_some_and(|user| user.rights.read_only) {
            return Err(Status::AccessError);
        }
        Ok(bucket)
    }

    /// The document that a request is about, with its collection in front, which exists.
    pub(super) fn key<'a>(&self, frame: &'a Frame) -> Result<Cow<'a, [u8]>, Status> {
        self.check_key(frame.key(), self.bucket()?)
    }

    /// Checks a document's key and puts its collection in front where the client does not.
    pub(super) fn check_key<'a>(
        &self,
        key: &'a [u8],
        bucket: &Bucket,
    ) -> Result<Cow<'a, [u8]>, Status> {
        let collections = self.features.contains(Feature::Collections);
        let parsed = DocumentKey::decode(key, collections).map_err(|_| Status::InvalidArguments)?;
        if parsed.id.is_empty() || parsed.id.len() > DocumentKey::MAX_ID_LEN {
            return Err(Status::InvalidArguments);
        }
        let collection = parsed.collection.unwrap_or_default().0;
        if RESERVED_COLLECTIONS.contains(&collection) {
            return Err(Status::InvalidArguments);
        }
        if !bucket.has_collection(collection) {
            return Err(Status::UnknownCollection);
        }
        Ok(if collections {
            Cow::Borrowed(key)
        } else {
            let mut with_collection = Vec::with_capacity(1 + key.len());
            with_collection.push(0);
            with_collection.extend_from_slice(key);
            Cow::Owned(with_collection)
        })
    }

    /// Returns the store context for an operation of this request.
    pub(super) fn context<'a>(&'a self, frame: &'a Frame, bucket: &'a Bucket) -> StoreContext<'a> {
        let argument = match frame.value() {
            [] => frame.extras(),
            value => value,
        };
        let origin = Origin {
            node: self.node.id,
            bucket: &bucket.name,
            opcode: frame.opcode(),
            opaque: frame.opaque(),
            connection: self.id,
            argument,
        };
        self.shared.context(self.now, origin)
    }

    /// The parts that all mutations have.
    pub(super) fn change<'a>(
        &self,
        frame: &Frame,
        key: &'a [u8],
    ) -> Result<WriteRequest<'a>, Status> {
        let framing = Framing::read(frame, &self.rules(frame.opcode()))?;
        let least = self.bucket()?.min_durability();
        Ok(WriteRequest {
            key,
            cas: frame.header().cas,
            preserve_expiry: framing.preserve_expiry,
            durability: DurabilityRequirement::at_least(framing.durability, least),
        })
    }
}

/// Returns whether an opcode is of the change protocol, DCP.
fn is_dcp(opcode: Opcode) -> bool {
    (0x50..=0x65).contains(&opcode.code())
}
