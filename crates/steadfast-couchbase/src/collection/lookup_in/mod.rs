//! Reads parts of a document.
//!
//! Each path has its own status: an invalid path does not affect the others,
//! and its error is returned when its value is read.

mod result;
mod spec;

pub use result::LookupInResult;
pub use spec::LookupInSpec;

use bytes::BytesMut;
use steadfast_wire::Encode;

use super::options::operation;
use super::{Collection, paths};
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;
use crate::kv::value::Value;

operation! {
    /// Reads parts of a document; see [`Collection::lookup_in`].
    LookupIn { paths: Result<Paths> } => LookupInResult, run
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
        let mut request = KvRequest::new(self, KvOperation::LookupIn, id);
        let paths = Paths::encode(&mut request, specs);
        LookupIn { request, paths }
    }
}

impl LookupIn<'_> {
    /// Cancel-safe: dropping the future abandons the lookup.
    async fn run(self) -> Result<LookupInResult> {
        self.request.check()?;
        let paths = self.paths?;
        let read = self
            .request
            .execute_and_read(|response| paths.read(&response));
        read.await
    }
}

/// The paths of a lookup, in the order sent: whether each asks for existence only.
pub(super) struct Paths {
    asks_existence: Vec<bool>,
}

impl Paths {
    /// Writes the paths into the request.
    pub(super) fn encode(request: &mut KvRequest<'_>, specs: &[LookupInSpec<'_>]) -> Result<Self> {
        paths::check_count(specs.len()).map_err(|problem| request.invalid(problem))?;
        request.paths = paths::order(specs.iter().map(LookupInSpec::is_xattr));
        let sent = || {
            let order = request.paths.iter();
            order.map(|place| &specs[usize::from(*place)])
        };
        let mut value = BytesMut::new();
        for spec in sent() {
            spec.on_wire()
                .append_to(&mut value)
                .map_err(|error| request.invalid(error.to_string()))?;
        }
        let asks_existence = sent().map(LookupInSpec::asks_existence).collect();
        request.value = Value::Owned(value.into());
        Ok(Self { asks_existence })
    }

    pub(super) fn read(&self, response: &KvResponse<'_>) -> Result<LookupInResult> {
        LookupInResult::read(response, &self.asks_existence)
    }
}
