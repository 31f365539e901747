//! Changes parts of a document, all of them or none.

mod result;
mod spec;

pub use result::MutateInResult;
pub use spec::MutateInSpec;

use bytes::BytesMut;
use steadfast_wire::Encode;
use steadfast_wire::subdoc::{DocFlags, MultiExtras};

use super::options::operation;
use super::store::Must;
use super::{Collection, Expiry, paths};
use crate::error::{Error, Result};
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::value::{Extras, Value};

const OPERATION: KvOperation = KvOperation::MutateIn;

operation! {
    /// Changes parts of a document; see [`Collection::mutate_in`].
    MutateIn {
        /// Set if the paths could not be encoded.
        problem: Option<Error>,
        semantics: StoreSemantics,
        expiry: Expiry
    }
    + durability + cas + expiry + preserve_expiry => MutateInResult, prepare
}

/// Whether the document must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StoreSemantics {
    /// It must exist.
    #[default]
    Replace,
    /// It is created if it does not exist.
    Upsert,
    /// It must not exist, and is created.
    Insert,
}

impl Collection {
    /// Changes parts of a document, sixteen at most, all of them or none.
    ///
    /// If one of them fails, the error has the kind of that failure, and its
    /// [`path_index`](crate::KvContext::path_index) names the path.
    ///
    /// ```no_run
    /// # use steadfast_couchbase::collection::{MutateInSpec, StoreSemantics};
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let changed = users
    ///     .mutate_in("u:42", &[
    ///         MutateInSpec::upsert("address.street", &"Main St").create_path(),
    ///         MutateInSpec::array_append("friends", ["u:7", "u:9"]),
    ///         MutateInSpec::increment("visits", 1),
    ///     ])
    ///     .store_semantics(StoreSemantics::Upsert)
    ///     .await?;
    /// let visits: i64 = changed.content_as(2)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn mutate_in<'a>(&'a self, id: &'a str, specs: &[MutateInSpec]) -> MutateIn<'a> {
        let mut request = KvRequest::new(self, OPERATION, id);
        MutateIn {
            problem: encode_paths(&mut request, specs).err(),
            request,
            semantics: StoreSemantics::default(),
            expiry: Expiry::NEVER,
        }
    }
}

impl MutateIn<'_> {
    /// Sets whether the document must exist.
    pub fn store_semantics(mut self, semantics: StoreSemantics) -> Self {
        self.semantics = semantics;
        self
    }

    fn prepare(&mut self) -> Result<()> {
        self.request.check()?;
        let (must, doc_flags) = match self.semantics {
            StoreSemantics::Replace => (Must::Exist, DocFlags::empty()),
            StoreSemantics::Upsert => (Must::Neither, DocFlags::UPSERT),
            StoreSemantics::Insert => (Must::NotExist, DocFlags::INSERT),
        };
        must.check(&self.request, self.expiry)?;
        let expiry = match self.expiry.encode(&self.request)? {
            0 => None,
            expiry => Some(expiry),
        };
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        self.request.extras = Extras::encode(&MultiExtras {
            expiry,
            user_flags: None,
            doc_flags,
        });
        Ok(())
    }
}

/// Writes the paths into the request.
fn encode_paths(request: &mut KvRequest<'_>, specs: &[MutateInSpec]) -> Result<()> {
    paths::check_count(specs.len()).map_err(|problem| request.invalid(problem))?;
    for (index, spec) in specs.iter().enumerate() {
        spec.check(index)?;
    }
    request.paths = paths::order(specs.iter().map(MutateInSpec::is_xattr));
    let mut value = BytesMut::new();
    for place in &request.paths {
        specs[usize::from(*place)]
            .on_wire()
            .append_to(&mut value)
            .map_err(|error| request.invalid(error.to_string()))?;
    }
    request.value = Value::Owned(value.into());
    Ok(())
}
