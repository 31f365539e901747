//! Whether there is a document.

use steadfast_wire::Entries;
use steadfast_wire::observe::{KeyState, ObserveResult};

use super::options::{awaitable, common_options};
use super::{Collection, check, result};
use crate::error::Result;
use crate::kv::execute::execute;
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common, KeyPlace};

/// Asks whether there is a document; see [`Collection::exists`].
#[must_use = "nothing happens until it is awaited"]
pub struct Exists<'a> {
    on: &'a Collection,
    id: &'a str,
    common: Common,
}

/// Whether there is a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExistsResult {
    exists: bool,
    cas: u64,
}

impl Collection {
    /// Asks whether there is a document, without reading it.
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
        let (on, common) = (self, Common::default());
        Exists { on, id, common }
    }
}

common_options!(Exists);
awaitable!(Exists => ExistsResult);

impl Exists<'_> {
    async fn run(self) -> Result<ExistsResult> {
        let operation = KvOperation::Exists;
        check::key(operation, &self.on.collection, self.id)?;
        let body = Body {
            key: KeyPlace::InValue,
            ..Body::default()
        };
        let answer = execute(operation, self.on.subject(self.id), body, &self.common).await?;
        let value = result::value(operation, &answer.frame)?;
        let observed = Entries::<ObserveResult<'_>>::new(&value).next();
        let observed = observed
            .ok_or_else(|| result::unreadable(operation, "it is empty"))?
            .map_err(|error| result::unreadable(operation, error))?;
        let exists = match observed.state {
            KeyState::NotPersisted | KeyState::Persisted => true,
            KeyState::NotFound | KeyState::LogicallyDeleted => false,
            KeyState::Unknown(state) => {
                let problem = format!("it has a state of {:#04x}", state.code());
                return Err(result::unreadable(operation, problem));
            }
        };
        let cas = if exists { observed.cas } else { 0 };
        Ok(ExistsResult { exists, cas })
    }
}

impl ExistsResult {
    /// Whether there is one.
    pub fn exists(&self) -> bool {
        self.exists
    }

    /// The document's version; 0 if there is none.
    pub fn cas(&self) -> u64 {
        self.cas
    }
}
