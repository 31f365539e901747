//! Checks whether a document exists.

use steadfast_wire::Entries;
use steadfast_wire::observe::{KeyState, ObserveResult};

use super::Collection;
use super::options::operation;
use crate::error::Result;
use crate::kv::operation::KvOperation;
use crate::kv::request::{KeyPlace, KvRequest, KvResponse};

operation! {
    /// Checks whether a document exists; see [`Collection::exists`].
    Exists {} => ExistsResult
}

/// Whether a document exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistsResult {
    exists: bool,
    cas: u64,
}

impl Collection {
    /// Checks whether a document exists, without reading it.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// if users.exists("u:42").await?.exists() {
    ///     println!("Ada is known");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn exists<'a>(&'a self, id: &'a str) -> Exists<'a> {
        let mut request = KvRequest::new(self, KvOperation::Exists, id);
        request.key = KeyPlace::InValue;
        Exists { request }
    }
}

impl ExistsResult {
    fn read(response: &KvResponse<'_>) -> Result<Self> {
        let value = response.value()?;
        let observed = Entries::<ObserveResult<'_>>::new(&value).next();
        let observed = observed
            .ok_or_else(|| response.unreadable("it is empty"))?
            .map_err(|error| response.unreadable(error))?;
        let exists = match observed.state {
            KeyState::NotPersisted | KeyState::Persisted => true,
            KeyState::NotFound | KeyState::LogicallyDeleted => false,
            KeyState::Unknown(state) => {
                let problem = format!("it has a state of {:#04x}", state.code());
                return Err(response.unreadable(problem));
            }
        };
        let cas = if exists { observed.cas } else { 0 };
        Ok(Self { exists, cas })
    }

    /// Whether the document exists.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The document's version; 0 if it does not exist.
    pub fn cas(&self) -> u64 {
        self.cas
    }
}
