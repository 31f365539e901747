//! Commands on whole documents.

use bytes::{Bytes, BytesMut};
use steadfast_wire::extras::{
    CounterExtras, CounterValue, DocumentMeta, ExpiryExtras, GetMetaVersion, LockTime, StoreExtras,
};
use steadfast_wire::{Datatype, Encode, Frame, Opcode, Status};

use super::response::KvResponse;
use super::session::{Flow, Handled, Session};
use super::validate::Framing;
use crate::bucket::Bucket;
use crate::journal::split_key;
use crate::store::document::{DocumentBody, StoredDocument, inflate};
use crate::store::expiry;
use crate::store::operations::{CounterChange, Side, StoreMode, WriteRequest};

impl Session {
    pub(super) fn get(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let key = self.key(frame)?;
        let vbucket = self.bucket()?.vbucket(frame.vbucket())?;
        let (document, cas) = vbucket.get(&key, self.node.id, self.now)?;
        self.writer().write_document(frame, document, cas, out)?;
        Ok(Flow::Done)
    }

    pub(super) fn get_replica(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let key = self.key(frame)?;
        let vbucket = self.bucket()?.vbucket(frame.vbucket())?;
        let document = vbucket
            .replica_copy(self.node.id)?
            .get(&key)
            .filter(|document| document.is_live(self.now))
            .ok_or(Status::KeyNotFound)?;
        self.writer()
            .write_document(frame, document, document.cas, out)?;
        Ok(Flow::Done)
    }

    pub(super) fn store(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let extras = StoreExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
        let mode = match frame.opcode() {
            Opcode::Add => StoreMode::Add,
            Opcode::Replace => StoreMode::Replace,
            _ => StoreMode::Set,
        };
        let body = DocumentBody::from_wire(frame.value(), frame.header().datatype)?;
        let change = self.change(frame, &key)?;
        self.check_room(bucket)?;
        let expiry = self.limit_expiry(bucket, &key, extras.expiry);
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let context = self.context(frame, bucket);
        let written = vbucket.store(mode, change, body, extras.flags, expiry, context)?;
        bucket.account(&mut vbucket);
        drop(vbucket);
        Ok(self.written(frame, written, Status::Success, Vec::new(), out))
    }

    pub(super) fn remove(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let change = self.change(frame, &key)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let written = vbucket.remove(change, self.context(frame, bucket))?;
        bucket.account(&mut vbucket);
        drop(vbucket);
        Ok(self.written(frame, written, Status::Success, Vec::new(), out))
    }

    pub(super) fn count(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let extras = CounterExtras::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
        let creates = extras.expiry != CounterExtras::DO_NOT_CREATE;
        let counter = CounterChange {
            delta: extras.delta,
            up: frame.opcode() == Opcode::Increment,
            initial: creates.then_some(extras.initial),
            expiry: self.limit_expiry(bucket, &key, extras.expiry),
        };
        let change = self.change(frame, &key)?;
        self.check_room(bucket)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let (written, value) = vbucket.count(change, counter, self.context(frame, bucket))?;
        bucket.account(&mut vbucket);
        drop(vbucket);
        let value = CounterValue { value }.to_bytes().to_vec();
        Ok(self.written(frame, written, Status::Success, value, out))
    }

    pub(super) fn concatenate(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let side = if frame.opcode() == Opcode::Append {
            Side::Append
        } else {
            Side::Prepend
        };
        let addition = if frame.header().datatype.contains(Datatype::SNAPPY) {
            inflate(frame.value())?
        } else {
            Bytes::copy_from_slice(frame.value())
        };
        let change = self.change(frame, &key)?;
        self.check_room(bucket)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let written = vbucket.concatenate(side, change, &addition, self.context(frame, bucket))?;
        bucket.account(&mut vbucket);
        drop(vbucket);
        Ok(self.written(frame, written, Status::Success, Vec::new(), out))
    }

    /// The answer is a CAS alone: unlike other mutations, a touch has no mutation token, and a
    /// client may take one for a protocol error.
    pub(super) fn touch(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        self.touch_then(frame, |session, _, cas| {
            let response = KvResponse::default().cas(cas);
            session.done(frame, response, out)
        })
    }

    pub(super) fn get_and_touch(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        self.touch_then(frame, |session, document, cas| {
            session.writer().write_document(frame, document, cas, out)?;
            Ok(Flow::Done)
        })
    }

    fn touch_then(
        &self,
        frame: &Frame,
        answer: impl FnOnce(&Self, &StoredDocument, u64) -> Handled,
    ) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let expiry = ExpiryExtras::decode(frame.extras())
            .map_err(|_| Status::InvalidArguments)?
            .expiry;
        let change = self.change(frame, &key)?;
        if Framing::read(frame, &self.rules(frame.opcode()))?
            .durability
            .is_some()
        {
            // Neither answer has a place for a write that waits.
            return Err(Status::NotSupported);
        }
        let change = WriteRequest {
            durability: None,
            ..change
        };
        let expiry = self.limit_expiry(bucket, &key, expiry);
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let context = self.context(frame, bucket);
        vbucket.touch(change, expiry, context)?;
        // An expiry in the past is a success too, after which the document is gone.
        let touched = vbucket.active_copy(self.node.id)?.get(&key);
        let document = touched.ok_or(Status::KeyNotFound)?;
        answer(self, document, document.cas)
    }

    pub(super) fn get_locked(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let seconds = match frame.extras() {
            [] => 0,
            extras => {
                LockTime::decode(extras)
                    .map_err(|_| Status::InvalidArguments)?
                    .seconds
            }
        };
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let document = vbucket.lock(&key, seconds, self.context(frame, bucket))?;
        self.writer()
            .write_document(frame, document, document.cas, out)?;
        Ok(Flow::Done)
    }

    pub(super) fn unlock(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let bucket = self.bucket_to_write()?;
        let key = self.key(frame)?;
        let mut vbucket = bucket.vbucket(frame.vbucket())?;
        let unlocked = vbucket.unlock(&key, frame.header().cas, self.context(frame, bucket));
        unlocked.map_err(|status| match status {
            Status::NotLocked => self.shared.version.rules().not_locked,
            other => other,
        })?;
        drop(vbucket);
        self.done(frame, KvResponse::default(), out)
    }

    pub(super) fn get_meta(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let version =
            GetMetaVersion::decode(frame.extras()).map_err(|_| Status::InvalidArguments)?;
        let key = self.key(frame)?;
        let bucket = self.bucket()?;
        let vbucket = bucket.vbucket(frame.vbucket())?;
        let (document, cas) = vbucket.get_with_tombstones(&key, self.context(frame, bucket))?;
        let mut datatype = document.datatype;
        if document.xattrs.is_some() {
            datatype |= Datatype::XATTR;
        }
        let meta = DocumentMeta {
            deleted: document.deleted,
            flags: document.flags,
            expiry: document.expiry,
            seqno: document.revision,
            datatype: (version == GetMetaVersion::WithDatatype).then_some(datatype),
        };
        let mut extras = BytesMut::new();
        meta.append_to(&mut extras)
            .map_err(|_| Status::InternalError)?;
        self.done(frame, KvResponse::with_extras(&extras).cas(cas), out)
    }

    /// Any document of the collection that the extras name, or of the default one.
    pub(super) fn get_random_key(&mut self, frame: &Frame, out: &mut BytesMut) -> Handled {
        let collection = match frame.extras() {
            [] => 0,
            extras => {
                let id = extras.try_into().map_err(|_| Status::InvalidArguments)?;
                u32::from_be_bytes(id)
            }
        };
        let bucket = self.bucket()?;
        if !bucket.has_collection(collection) {
            return Err(Status::UnknownCollection);
        }
        let start = (steadfast_os::random::u64() as u16) % bucket.settings.vbuckets;
        for step in 0..bucket.settings.vbuckets {
            let vbucket = bucket.vbucket((start + step) % bucket.settings.vbuckets)?;
            let Ok(copy) = vbucket.active_copy(self.node.id) else {
                continue;
            };
            let found = copy.iter().find(|(key, document)| {
                split_key(key).0 == collection && document.is_live(self.now)
            });
            if let Some((key, document)) = found {
                let shown = if self.features.contains(steadfast_wire::Feature::Collections) {
                    &key[..]
                } else {
                    split_key(key).1
                };
                let value = document.inflated()?;
                let encoded = steadfast_wire::FrameBuilder::reply(frame, Status::Success)
                    .cas(document.cas)
                    .datatype(document.datatype - Datatype::SNAPPY)
                    .extras(document.flags.to_be_bytes())
                    .key(shown)
                    .value(value)
                    .encode(out);
                return encoded
                    .map(|()| Flow::Done)
                    .map_err(|_| Status::InternalError);
            }
        }
        Err(Status::KeyNotFound)
    }

    /// Refuses what would not fit the bucket's quota.
    pub(super) fn check_room(&self, bucket: &Bucket) -> Result<(), Status> {
        if bucket.is_full(self.now) {
            Err(Status::OutOfMemory)
        } else {
            Ok(())
        }
    }

    /// The expiry as on the wire, no later than the collection allows.
    pub(super) fn limit_expiry(&self, bucket: &Bucket, key: &[u8], expiry: u32) -> u32 {
        let (collection, _) = split_key(key);
        match bucket.max_ttl(collection) {
            0 => expiry,
            limit => {
                let latest = self.now.seconds().saturating_add(limit.into());
                let latest = u32::try_from(latest).unwrap_or(u32::MAX);
                match expiry::absolute(expiry, self.now) {
                    wanted if wanted == 0 || wanted > latest => latest,
                    _ => expiry,
                }
            }
        }
    }
}
