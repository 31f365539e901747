//! Writing a document.

use serde::Serialize;
use steadfast_wire::extras;

use super::check::Must;
use super::options::{
    awaitable, cas_option, common_options, durability_option, expiry_option, preserve_expiry_option,
};
use super::value::{Encoded, unencodable};
use super::{Collection, Expiry, MutationResult, Raw, check};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::packing::Packing;
use crate::kv::request::{Body, Common, DurabilityLevel, Extras};

/// Writes a document; see [`Collection::upsert`].
#[must_use = "nothing happens until it is awaited"]
pub struct Store<'a> {
    on: &'a Collection,
    operation: KvOperation,
    id: &'a str,
    value: Encoded,
    expiry: Expiry,
    cas: Option<u64>,
    durability: Option<DurabilityLevel>,
    preserve_expiry: bool,
    common: Common,
}

impl Collection {
    /// Writes a document as JSON, whether it exists or not.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use steadfast_couchbase::DurabilityLevel;
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let written = users
    ///     .upsert("u:42", &"Ada")
    ///     .durability(DurabilityLevel::Majority)
    ///     .expiry(Duration::from_secs(3600))
    ///     .await?;
    /// println!("version {}", written.cas());
    /// # Ok(())
    /// # }
    /// ```
    pub fn upsert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        Store::new(self, KvOperation::Upsert, id, Raw::encoded(value))
    }

    /// Writes a document as JSON that must not exist. If it does, it is a
    /// [`DocumentExists`](crate::ErrorKind::DocumentExists).
    ///
    /// ```no_run
    /// # use steadfast_couchbase::ErrorKind;
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// match users.insert("u:42", &"Ada").await {
    ///     Err(error) if error.kind() == ErrorKind::DocumentExists => println!("was there"),
    ///     inserted => println!("version {}", inserted?.cas()),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        Store::new(self, KvOperation::Insert, id, Raw::encoded(value))
    }

    /// Writes a document as JSON that must exist, and with [`Store::cas`] must
    /// have a certain version.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get("u:42").await?;
    /// let name: String = found.content()?;
    /// users.replace("u:42", &name.to_uppercase()).cas(found.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        Store::new(self, KvOperation::Replace, id, Raw::encoded(value))
    }

    /// [`upsert`](Self::upsert) with bytes.
    ///
    /// ```no_run
    /// # use steadfast_couchbase::collection::Raw;
    /// # async fn example(pictures: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// pictures.upsert_raw("p:42", Raw::binary(vec![0x89, b'P', b'N', b'G'])).await?;
    /// let picture = pictures.get("p:42").await?;
    /// assert_eq!(picture.bytes()[0], 0x89);
    /// # Ok(())
    /// # }
    /// ```
    pub fn upsert_raw<'a>(&'a self, id: &'a str, value: Raw) -> Store<'a> {
        Store::new(self, KvOperation::Upsert, id, Ok(value))
    }

    /// [`insert`](Self::insert) with bytes.
    pub fn insert_raw<'a>(&'a self, id: &'a str, value: Raw) -> Store<'a> {
        Store::new(self, KvOperation::Insert, id, Ok(value))
    }

    /// [`replace`](Self::replace) with bytes.
    pub fn replace_raw<'a>(&'a self, id: &'a str, value: Raw) -> Store<'a> {
        Store::new(self, KvOperation::Replace, id, Ok(value))
    }
}

common_options!(Store);
durability_option!(Store);
cas_option!(Store);
expiry_option!(Store);
preserve_expiry_option!(Store);
awaitable!(Store => MutationResult);

impl<'a> Store<'a> {
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str, value: Encoded) -> Self {
        Self {
            on,
            operation,
            id,
            value,
            expiry: Expiry::NEVER,
            cas: None,
            durability: None,
            preserve_expiry: false,
            common: Common::default(),
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an async function keeps self twice")]
    fn run(self) -> impl Future<Output = Result<MutationResult>> + Send {
        async move {
            let operation = self.operation;
            check::key(operation, &self.on.collection, self.id)?;
            self.check_options()?;
            let value = self
                .value
                .as_ref()
                .map_err(|error| unencodable(operation, error))?;
            check::value(operation, value.bytes())?;
            let (flags, expiry) = (value.flags, check::expiry(operation, self.expiry)?);
            let body = Body {
                extras: Extras::of(&extras::StoreExtras { flags, expiry }.to_bytes()),
                value: value.bytes(),
                datatype: value.datatype(),
                cas: check::cas(operation, self.cas)?,
                durability: self.durability,
                preserve_expiry: self.preserve_expiry,
                packing: Packing::Possible,
                ..Body::default()
            };
            let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
            Ok(MutationResult::read(&answer, &self.on.bucket.name))
        }
    }

    fn check_options(&self) -> Result<()> {
        let must = match self.operation {
            KvOperation::Insert => Must::NotExist,
            KvOperation::Replace => Must::Exist,
            _ => Must::Neither,
        };
        let (cas, keep) = (self.cas, self.preserve_expiry);
        check::together(self.operation, must, cas, keep, self.expiry)
    }
}
