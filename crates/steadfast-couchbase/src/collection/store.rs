//! Writes and removes documents.

use serde::Serialize;
use steadfast_wire::extras;

use super::options::operation;
use super::value::{Encoded, unencodable};
use super::{Collection, Expiry, MutationResult, Raw};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;

operation! {
    /// Writes a document; see [`Collection::upsert`].
    Store {
        flags: u32,
        expiry: Expiry,
        /// Set if the value could not be encoded.
        problem: Option<serde_json::Error>
    }
    + durability + cas + expiry + preserve_expiry => MutationResult, prepare
}

operation! {
    /// Removes a document; see [`Collection::remove`].
    Remove {} + durability + cas => MutationResult
}

impl Collection {
    /// Writes a document as JSON, whether or not it exists.
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
    #[inline]
    pub fn upsert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        Store::new(self, KvOperation::Upsert, id, Raw::encoded(value))
    }

    /// Creates a document as JSON. If it exists, the error is
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
    #[inline]
    pub fn insert<'a, T: Serialize + ?Sized>(&'a self, id: &'a str, value: &T) -> Store<'a> {
        Store::new(self, KvOperation::Insert, id, Raw::encoded(value))
    }

    /// Replaces a document as JSON. It must exist, and with [`Store::cas`] have a
    /// certain version.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get("u:42").await?;
    /// let name: String = found.content()?;
    /// users.replace("u:42", &name.to_uppercase()).cas(found.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
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
    #[inline]
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

    /// Removes a document.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get("u:42").await?;
    /// users.remove("u:42").cas(found.cas()).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn remove<'a>(&'a self, id: &'a str) -> Remove<'a> {
        let request = KvRequest::new(self, KvOperation::Remove, id);
        Remove { request }
    }
}

impl<'a> Store<'a> {
    #[inline]
    fn new(on: &'a Collection, operation: KvOperation, id: &'a str, value: Encoded) -> Self {
        let mut request = KvRequest::new(on, operation, id);
        request.compressible = true;
        let (flags, problem) = match value {
            Ok(value) => {
                request.datatype = value.datatype();
                request.value = value.bytes;
                (value.flags, None)
            }
            Err(error) => (0, Some(error)),
        };
        Self {
            request,
            flags,
            expiry: Expiry::NEVER,
            problem,
        }
    }

    fn prepare(&mut self) -> Result<()> {
        let must = match self.request.operation {
            KvOperation::Insert => Must::NotExist,
            KvOperation::Replace => Must::Exist,
            _ => Must::Neither,
        };
        must.check(&self.request, self.expiry)?;
        if let Some(error) = &self.problem {
            return Err(unencodable(self.request.operation, error));
        }
        let (flags, expiry) = (self.flags, self.expiry.encode(&self.request)?);
        self.request.extras = extras::StoreExtras { flags, expiry }.to_bytes()[..].into();
        Ok(())
    }
}

/// Whether the written document must exist.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Must {
    /// It must exist.
    Exist,
    /// It must not exist.
    NotExist,
    /// It may or may not exist.
    Neither,
}

impl Must {
    /// Rejects options of a write that contradict each other.
    pub(super) fn check(self, request: &KvRequest<'_>, expiry: Expiry) -> Result<()> {
        let problem = match self {
            Self::NotExist if request.with_cas => "a document that must not exist has no CAS",
            Self::NotExist if request.preserve_expiry => {
                "a document that must not exist has no expiry to preserve"
            }
            Self::Exist if request.preserve_expiry && !expiry.is_never() => {
                "the expiry cannot be both preserved and set"
            }
            Self::Exist | Self::NotExist | Self::Neither => return Ok(()),
        };
        Err(request.invalid(problem))
    }
}
