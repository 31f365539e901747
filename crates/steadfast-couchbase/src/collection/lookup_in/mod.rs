//! Reading parts of a document.
//!
//! Each part has an outcome of its own: where one path leads nowhere, the others
//! can be read all the same, and only who asks for that one gets the error.

mod result;
mod spec;

pub use result::LookupInResult;
pub use spec::LookupInSpec;

use bytes::BytesMut;
use steadfast_wire::subdoc::{DocFlags, MultiExtras};
use steadfast_wire::{Encode, Frame};

use super::options::{awaitable, common_options};
use super::{Collection, check, paths};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, Extras};

/// Reads parts of a document; see [`Collection::lookup_in`].
#[must_use = "nothing happens until it is awaited"]
pub struct LookupIn<'a> {
    on: &'a Collection,
    id: &'a str,
    paths: Result<Paths>,
    access_deleted: bool,
    common: Common,
}

impl Collection {
    /// Reads parts of a document, sixteen at most.
    ///
    /// ```no_run
    /// # use steadfast_couchbase::collection::LookupInSpec;
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users
    ///     .lookup_in("u:42", &[
    ///         LookupInSpec::get("name"),
    ///         LookupInSpec::exists("address.street"),
    ///         LookupInSpec::count("friends"),
    ///         LookupInSpec::get("$document.last_modified").xattr(),
    ///     ])
    ///     .await?;
    /// let name: String = found.content_as(0)?;
    /// let has_street = found.exists(1)?;
    /// let friends: usize = found.content_as(2)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn lookup_in<'a>(&'a self, id: &'a str, specs: &[LookupInSpec<'_>]) -> LookupIn<'a> {
        LookupIn {
            on: self,
            id,
            paths: Paths::encode(KvOperation::LookupIn, specs),
            access_deleted: false,
            common: Common::default(),
        }
    }
}

common_options!(LookupIn);
awaitable!(LookupIn => LookupInResult);

impl LookupIn<'_> {
    /// Reads a document that was removed, too: some of its extended attributes
    /// stay for a while.
    pub fn access_deleted(mut self) -> Self {
        self.access_deleted = true;
        self
    }

    async fn run(self) -> Result<LookupInResult> {
        let operation = KvOperation::LookupIn;
        check::key(operation, &self.on.collection, self.id)?;
        let paths = self.paths?;
        let mut body = paths.body();
        if self.access_deleted {
            let flags = MultiExtras {
                expiry: None,
                doc_flags: DocFlags::ACCESS_DELETED,
            };
            body.extras = Extras::new(&flags);
        }
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        paths.read(operation, &answer.frame)
    }
}

/// Lookups, as they are sent.
pub(super) struct Paths {
    value: BytesMut,
    order: Vec<u8>,
    /// Which of them, as they are sent, only ask whether there is something.
    asks_existence: Vec<bool>,
}

impl Paths {
    pub(super) fn encode(operation: KvOperation, specs: &[LookupInSpec<'_>]) -> Result<Self> {
        paths::check_count(operation, specs.len())?;
        let order = paths::order(specs.iter().map(LookupInSpec::is_xattr));
        let sent = || order.iter().map(|place| &specs[usize::from(*place)]);
        let mut value = BytesMut::new();
        for spec in sent() {
            spec.on_wire()
                .append_to(&mut value)
                .map_err(|error| check::invalid(operation, error.to_string()))?;
        }
        let asks_existence = sent().map(LookupInSpec::asks_existence).collect();
        Ok(Self {
            value,
            order,
            asks_existence,
        })
    }

    pub(super) fn body(&self) -> Body<'_> {
        Body {
            value: &self.value,
            paths: &self.order,
            ..Body::default()
        }
    }

    pub(super) fn read(&self, operation: KvOperation, answer: &Frame) -> Result<LookupInResult> {
        LookupInResult::read(operation, answer, &self.order, &self.asks_existence)
    }
}
