//! Changing parts of a document, all of them or none.

mod result;
mod spec;

pub use result::MutateInResult;
pub use spec::{MutateInSpec, MutationMacro};

use bytes::BytesMut;
use steadfast_wire::Encode;
use steadfast_wire::subdoc::{DocFlags, MultiExtras};

use super::check::Must;
use super::options::{
    awaitable, cas_option, common_options, durability_option, expiry_option, preserve_expiry_option,
};
use super::{Collection, Expiry, check, paths};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, DurabilityLevel, Extras};

const OPERATION: KvOperation = KvOperation::MutateIn;

/// Changes parts of a document; see [`Collection::mutate_in`].
#[must_use = "nothing happens until it is awaited"]
pub struct MutateIn<'a> {
    on: &'a Collection,
    id: &'a str,
    paths: Result<Paths>,
    semantics: StoreSemantics,
    access_deleted: bool,
    expiry: Expiry,
    cas: Option<u64>,
    durability: Option<DurabilityLevel>,
    preserve_expiry: bool,
    common: Common,
}

/// Whether the document must exist for its parts to be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreSemantics {
    /// It must.
    #[default]
    Replace,
    /// It is created if it does not.
    Upsert,
    /// It must not, and is created.
    Insert,
}

/// Mutations, as they are sent.
struct Paths {
    value: BytesMut,
    order: Vec<u8>,
}

impl Collection {
    /// Changes parts of a document, sixteen at most, all of them or none.
    ///
    /// If one of them cannot be done, the error is of the kind that says why, and
    /// its note and [`path_index`](crate::KvContext::path_index) say which.
    ///
    /// ```no_run
    /// # use steadfast_couchbase::collection::{MutateInSpec, MutationMacro, StoreSemantics};
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let changed = users
    ///     .mutate_in("u:42", &[
    ///         MutateInSpec::upsert("address.street", &"Main St").create_path(),
    ///         MutateInSpec::array_append("friends", ["u:7", "u:9"]),
    ///         MutateInSpec::increment("visits", 1),
    ///         MutateInSpec::upsert_macro("audit.cas", MutationMacro::Cas).create_path(),
    ///     ])
    ///     .store_semantics(StoreSemantics::Upsert)
    ///     .await?;
    /// let visits: i64 = changed.content_as(2)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutate_in<'a>(&'a self, id: &'a str, specs: &[MutateInSpec]) -> MutateIn<'a> {
        MutateIn {
            on: self,
            id,
            paths: Paths::encode(specs),
            semantics: StoreSemantics::default(),
            access_deleted: false,
            expiry: Expiry::NEVER,
            cas: None,
            durability: None,
            preserve_expiry: false,
            common: Common::default(),
        }
    }
}

common_options!(MutateIn);
durability_option!(MutateIn);
cas_option!(MutateIn);
expiry_option!(MutateIn);
preserve_expiry_option!(MutateIn);
awaitable!(MutateIn => MutateInResult);

impl MutateIn<'_> {
    /// Whether the document must exist.
    pub fn store_semantics(mut self, semantics: StoreSemantics) -> Self {
        self.semantics = semantics;
        self
    }

    /// Changes the extended attributes of a document that was removed, too.
    pub fn access_deleted(mut self) -> Self {
        self.access_deleted = true;
        self
    }

    async fn run(self) -> Result<MutateInResult> {
        check::key(OPERATION, &self.on.collection, self.id)?;
        self.check_options()?;
        let extras = MultiExtras {
            expiry: match check::expiry(OPERATION, self.expiry)? {
                0 => None,
                expiry => Some(expiry),
            },
            doc_flags: self.doc_flags(),
        };
        let cas = check::cas(OPERATION, self.cas)?;
        let paths = self.paths?;
        let body = Body {
            extras: Extras::new(&extras),
            value: &paths.value,
            cas,
            durability: self.durability,
            preserve_expiry: self.preserve_expiry,
            paths: &paths.order,
            ..Body::default()
        };
        let answer = execute(OPERATION, self.on.subject(self.id), body, &self.common).await?;
        MutateInResult::read(&answer, &self.on.bucket.name, &paths.order)
    }

    fn doc_flags(&self) -> DocFlags {
        let semantics = match self.semantics {
            StoreSemantics::Replace => DocFlags::empty(),
            StoreSemantics::Upsert => DocFlags::UPSERT,
            StoreSemantics::Insert => DocFlags::INSERT,
        };
        let deleted = if self.access_deleted {
            DocFlags::ACCESS_DELETED
        } else {
            DocFlags::empty()
        };
        semantics | deleted
    }

    fn check_options(&self) -> Result<()> {
        let must = match self.semantics {
            StoreSemantics::Replace => Must::Exist,
            StoreSemantics::Upsert => Must::Neither,
            StoreSemantics::Insert => Must::NotExist,
        };
        let (cas, keep) = (self.cas, self.preserve_expiry);
        check::together(OPERATION, must, cas, keep, self.expiry)
    }
}

impl Paths {
    fn encode(specs: &[MutateInSpec]) -> Result<Self> {
        paths::check_count(OPERATION, specs.len())?;
        for (index, spec) in specs.iter().enumerate() {
            spec.check(index)?;
        }
        let order = paths::order(specs.iter().map(MutateInSpec::is_xattr));
        let mut value = BytesMut::new();
        for place in &order {
            specs[usize::from(*place)]
                .on_wire()
                .append_to(&mut value)
                .map_err(|error| check::invalid(OPERATION, error.to_string()))?;
        }
        check::value(OPERATION, &value)?;
        Ok(Self { value, order })
    }
}
