//! One key-value operation: everything that is sent, where to, and under which
//! options.
//!
//! The builders of [`collection`](crate::collection) fill a [`KvRequest`] and
//! execute it. Each attempt encodes the request again, because the connection of
//! the attempt decides about collections, datatypes and compression.

use std::sync::Arc;
use std::time::Duration;

use steadfast::strategy::AnyStrategy;
use steadfast::{Call, Driver};
use steadfast_wire::collections::DEFAULT_NAME;
pub use steadfast_wire::frame_info::DurabilityLevel;
use steadfast_wire::{Datatype, DocumentKey, Feature, Frame};

use super::connection::Connection;
use super::future::KvFuture;
use super::operation::KvOperation;
use super::response::KvResponse;
use super::value::{Extras, Value};
use crate::Collection;
use crate::drive::ClientDriver;
use crate::error::{Error, ErrorKind, OperationTarget, Result};
use crate::observe::{Finished, SlowRequest};
use crate::request_options::RequestOptions;
use crate::topology::{BucketCore, Routes};
use crate::world::TokioWorld;

/// The least time of a durable write.
pub(super) const MIN_DURABLE: Duration = Duration::from_millis(1500);

/// The largest value that servers store, uncompressed.
const MAX_VALUE: usize = 20 << 20;

/// The longest id that fits every collection. An encoded collection id takes up
/// to four bytes more than that of the default collection.
const MAX_ID_ANYWHERE: usize = DocumentKey::MAX_ID_LEN - 4;

/// One key-value operation.
#[derive(Clone)]
pub(crate) struct KvRequest<'a> {
    pub(crate) operation: KvOperation,
    pub(crate) collection: &'a Collection,
    pub(crate) id: &'a str,
    /// The copy to use; 0 is the active one.
    pub(crate) copy: u8,
    /// Fails at once when no node has the copy, instead of waiting for one.
    pub(crate) skip_missing_copy: bool,
    pub(crate) extras: Extras,
    pub(crate) value: Value,
    pub(crate) datatype: Datatype,
    /// Allows compression of the value.
    pub(crate) compressible: bool,
    /// The version that the document must have, if `with_cas` is set. Otherwise 0.
    pub(crate) cas: u64,
    pub(crate) with_cas: bool,
    pub(crate) durability: Option<DurabilityLevel>,
    pub(crate) preserve_expiry: bool,
    /// For each subdocument path, in the order sent, its index in the user's
    /// list. Empty for other operations.
    pub(crate) paths: Box<[u8]>,
    /// Boxed, because few requests have any.
    pub(crate) options: Option<Box<RequestOptions>>,
}

impl<'a> KvRequest<'a> {
    #[inline]
    pub(crate) fn new(on: &'a Collection, operation: KvOperation, id: &'a str) -> Self {
        Self {
            operation,
            collection: on,
            id,
            copy: 0,
            skip_missing_copy: false,
            extras: Extras::default(),
            value: Value::Owned(Vec::new()),
            datatype: Datatype::RAW,
            compressible: false,
            cas: 0,
            with_cas: false,
            durability: None,
            preserve_expiry: false,
            paths: Box::default(),
            options: None,
        }
    }

    #[inline]
    pub(crate) fn bucket(&self) -> &'a Arc<BucketCore> {
        &self.collection.bucket
    }

    /// Requires that the document still has this version.
    pub(crate) fn require_cas(&mut self, cas: u64) {
        self.cas = cas;
        self.with_cas = true;
    }

    /// Describes the operation to the engine.
    #[inline]
    pub(super) fn call(&self) -> Call {
        let operation = self.operation;
        let call = Call::new(operation.name())
            .service("kv")
            .idempotent(operation.is_idempotent())
            .timeout(self.timeout());
        match &self.options {
            Some(options) => options.describe(call),
            None => call,
        }
    }

    /// Makes its driver. Without retries it holds nothing but the call.
    // Inlined always, so that it is made in place.
    #[inline(always)]
    pub(super) fn driver(&self) -> ClientDriver<'a> {
        let core = &self.bucket().core;
        let is_usual = self.options.is_none() && !core.options.fleet;
        let strategy = match is_usual {
            true => AnyStrategy::Borrowed(&*core.strategy),
            false => self.strategy(),
        };
        Driver::new(strategy, self.call(), TokioWorld(core))
    }

    /// Returns its own strategy or the client's, aware of the load of the node that
    /// the first attempt goes to.
    fn strategy(&self) -> AnyStrategy<'a> {
        let bucket = self.bucket();
        let client = &bucket.core.strategy;
        let own = (self.options.as_ref()).and_then(|options| options.strategy(client));
        let routes = bucket.routes.load();
        let node =
            (routes.as_ref()).and_then(|routes| routes.current(self.vbucket_in(routes), self.copy));
        let load_aware = node.and_then(|node| node.load_aware.as_ref());
        match (own, load_aware) {
            (None, None) => AnyStrategy::Borrowed(&**client),
            (Some(own), None) => AnyStrategy::Shared(own),
            (None, Some(load_aware)) => AnyStrategy::Shared(load_aware.clone()),
            (Some(own), Some(load_aware)) => AnyStrategy::Shared(Arc::new(load_aware.around(own))),
        }
    }

    /// Returns the vbucket that it is sent to.
    #[inline]
    pub(super) fn vbucket_in(&self, routes: &Routes) -> u16 {
        routes.vbucket(self.id.as_bytes())
    }

    /// Returns the collection's id, if it is known.
    #[inline]
    pub(super) fn collection_id(&self) -> Option<u32> {
        self.collection.entry.id()
    }

    /// Makes its response.
    #[inline]
    pub(super) fn response(&mut self, frame: Frame, vbucket: u16) -> KvResponse<'a> {
        KvResponse {
            operation: self.operation,
            bucket: self.bucket(),
            frame,
            vbucket,
            copy: self.copy,
            paths: std::mem::take(&mut self.paths),
        }
    }

    /// Records its end in metrics and, if it took long, in reports.
    #[inline]
    pub(super) fn record_end(&self, finished: &Finished, slow: impl FnOnce() -> SlowRequest) {
        let (bucket, collection) = (self.bucket(), &self.collection.entry);
        let place = || [&*bucket.name, &*collection.scope, &*collection.name];
        let durations = &collection.durations;
        durations.record(self.operation, finished, place, &bucket.core);
        let reports = &bucket.core.reports;
        if reports.is_slow_kv(finished) {
            reports.slow(finished.elapsed(), slow());
        }
    }

    /// Describes it for the report of slow requests.
    #[cold]
    pub(super) fn slow(
        &self,
        finished: &Finished,
        last_opaque: Option<u32>,
        connection: Option<&Connection>,
        last_server_duration: Option<Duration>,
    ) -> SlowRequest {
        SlowRequest {
            operation: self.operation.name(),
            service: "kv",
            retries: finished.retries,
            timeout: Some(self.timeout()),
            last_opaque,
            last_local: connection.map(|connection| connection.local.clone()),
            last_remote: connection.map(|connection| connection.peer.clone()),
            last_server_duration,
        }
    }

    /// Describes what it is about, for errors.
    #[cold]
    pub(super) fn target(&self) -> OperationTarget {
        let (bucket, collection) = (self.bucket(), &self.collection.entry);
        OperationTarget {
            bucket: Some(bucket.name.clone()),
            scope: Some(collection.scope.clone()),
            collection: Some(collection.name.clone()),
            key: (bucket.core.options.unredacted_keys).then(|| self.id.to_owned()),
        }
    }

    /// Runs the operation to its end, and reads its response.
    ///
    /// Cancel-safe: dropping the future abandons the current attempt.
    pub(crate) async fn execute_and_read<T>(
        self,
        read: impl FnOnce(KvResponse<'a>) -> Result<T>,
    ) -> Result<T> {
        let mut request = self.execute();
        let response = (&mut request).await?;
        read(response).map_err(|error| request.add_context(error))
    }

    /// Runs the operation to its end.
    #[inline(always)]
    pub(crate) fn execute(self) -> KvFuture<'a> {
        KvFuture::new(self)
    }

    /// Rejects keys, values and versions that no server accepts.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        let is_usual = (1..=MAX_ID_ANYWHERE).contains(&self.id.len())
            && self.value.len() <= MAX_VALUE
            && !self.with_cas
            && self.collection.entry.invalid_name.is_none();
        if is_usual { Ok(()) } else { self.check_all() }
    }

    fn check_all(&self) -> Result<()> {
        if let Some(problem) = &self.collection.entry.invalid_name {
            return Err(self.invalid(&**problem));
        }
        match self.id.len() {
            0 => return Err(self.invalid("the key is empty")),
            1..=MAX_ID_ANYWHERE => {}
            len => {
                let names = [self.collection.scope(), self.collection.name()];
                let max = if names == [DEFAULT_NAME; 2] {
                    DocumentKey::MAX_ID_LEN
                } else {
                    MAX_ID_ANYWHERE
                };
                if len > max {
                    let problem = format!("the key has {len} bytes; the limit is {max}");
                    return Err(self.invalid(problem));
                }
            }
        }
        if self.value.len() > MAX_VALUE {
            let len = self.value.len();
            let problem = format!("the value has {len} bytes; the limit is {MAX_VALUE}");
            return Err(
                Error::new(ErrorKind::ValueTooLarge, self.operation.name()).because(problem)
            );
        }
        // On the wire, 0 means any version: the check would silently be skipped.
        if self.with_cas && self.cas == 0 {
            return Err(self.invalid("a CAS of 0 is not a version"));
        }
        Ok(())
    }

    /// An error for an argument that was rejected before anything was sent.
    #[cold]
    pub(crate) fn invalid(&self, problem: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, self.operation.name()).because(problem)
    }

    /// The time for all attempts: the user's, or the default of the operation's
    /// kind. A durable write gets at least what the server needs.
    #[inline]
    pub(super) fn timeout(&self) -> Duration {
        let defaults = &self.bucket().core.options;
        let (default, least) = match self.durability {
            None => (defaults.kv_timeout, Duration::ZERO),
            Some(_) => (defaults.kv_durable_timeout, MIN_DURABLE),
        };
        match &self.options {
            None => default.max(least),
            Some(options) => options.timeout(default, least),
        }
    }

    /// Returns what the connection lacks to carry the request, if anything.
    #[inline]
    pub(super) fn lacking_feature(
        &self,
        connection: &Connection,
        collection_id: u32,
    ) -> Option<&'static str> {
        let lacks = |needed, feature| needed && !connection.has(feature);
        if lacks(self.durability.is_some(), Feature::SyncReplication)
            || lacks(self.durability.is_some(), Feature::AltRequest)
        {
            Some("the server does not support durable writes")
        } else if lacks(self.preserve_expiry, Feature::PreserveTtl)
            || lacks(self.preserve_expiry, Feature::AltRequest)
        {
            Some("the server cannot preserve an expiry")
        } else if lacks(collection_id != 0, Feature::Collections) {
            Some("the server does not support collections")
        } else {
            None
        }
    }
}
