//! Reading copies of a document.
//!
//! A copy may be older than the document. Who can live with that can read while
//! the node that has the document cannot be reached (SDK RFC 0053). All of these
//! are idempotent, so a timeout of theirs is never ambiguous.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::options::{awaitable, common_options};
use super::{Collection, GetResult, check};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::{Subject, execute};
use crate::kv::operation::KvOperation;
use crate::kv::request::{Body, Common};

/// The most replicas that a bucket can have.
const MOST_REPLICAS: u8 = 3;

/// Reads one replica; see [`Collection::get_replica`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetReplica<'a> {
    on: &'a Collection,
    id: &'a str,
    replica: u8,
    common: Common,
}

/// Reads the copy that answers first; see [`Collection::get_any_replica`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetAnyReplica<'a> {
    on: &'a Collection,
    id: &'a str,
    common: Common,
}

/// Reads all copies; see [`Collection::get_all_replicas`].
#[must_use = "nothing happens until it is awaited"]
pub struct GetAllReplicas<'a> {
    on: &'a Collection,
    id: &'a str,
    common: Common,
}

/// A copy of a document.
#[derive(Clone, Debug)]
pub struct GetReplicaResult {
    document: GetResult,
    copy: u8,
}

impl Collection {
    /// Reads one replica of a document: the first, the second or the third.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let name: String = users.get_replica("u:42", 1).await?.content()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_replica<'a>(&'a self, id: &'a str, replica: u8) -> GetReplica<'a> {
        GetReplica {
            on: self,
            id,
            replica,
            common: Common::default(),
        }
    }

    /// Reads the document and all its replicas at once, and returns what comes
    /// first. If all answer that there is no such document, it is a
    /// [`DocumentUnretrievable`](ErrorKind::DocumentUnretrievable).
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// let found = users.get_any_replica("u:42").await?;
    /// if found.is_replica() {
    ///     println!("perhaps not the newest");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_any_replica<'a>(&'a self, id: &'a str) -> GetAnyReplica<'a> {
        let (on, common) = (self, Common::default());
        GetAnyReplica { on, id, common }
    }

    /// Reads the document and all its replicas at once, and returns those that
    /// could be read, in the order in which they came. There may be none.
    ///
    /// It takes as long as the slowest of them. Copies that no node has are not
    /// waited for; those on nodes that do not answer are, until the time is up.
    ///
    /// ```no_run
    /// # async fn example(users: steadfast_couchbase::Collection) -> Result<(), steadfast_couchbase::Error> {
    /// for copy in users.get_all_replicas("u:42").await? {
    ///     println!("copy {} has version {}", copy.copy(), copy.cas());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If none could be read, and not because there is no such document.
    pub fn get_all_replicas<'a>(&'a self, id: &'a str) -> GetAllReplicas<'a> {
        let (on, common) = (self, Common::default());
        GetAllReplicas { on, id, common }
    }

    /// The copies to ask when all of them are asked. Without a config nobody knows
    /// how many there are; each finds out for itself then.
    fn copies(&self) -> std::ops::RangeInclusive<u8> {
        let replicas = self.bucket.routes().as_ref().map(|it| it.replicas());
        let replicas = replicas.and_then(|replicas| u8::try_from(replicas).ok());
        0..=replicas.map_or(MOST_REPLICAS, |it| it.min(MOST_REPLICAS))
    }

    async fn read_copy(
        &self,
        id: &str,
        copy: u8,
        dispensable: bool,
        common: &Common,
    ) -> Result<GetReplicaResult> {
        let operation = match copy {
            0 => KvOperation::Get,
            _ => KvOperation::GetReplica,
        };
        let subject = Subject {
            copy,
            dispensable,
            ..self.subject(id)
        };
        let answer = execute(operation, subject, Body::default(), common).await?;
        let document = GetResult::read(operation, &answer.frame)?;
        Ok(GetReplicaResult { document, copy })
    }
}

common_options!(GetReplica);
common_options!(GetAnyReplica);
common_options!(GetAllReplicas);
awaitable!(GetReplica => GetReplicaResult);
awaitable!(GetAnyReplica => GetReplicaResult);
awaitable!(GetAllReplicas => Vec<GetReplicaResult>);

impl GetReplica<'_> {
    async fn run(self) -> Result<GetReplicaResult> {
        let operation = KvOperation::GetReplica;
        check::key(operation, &self.on.collection, self.id)?;
        if !(1..=MOST_REPLICAS).contains(&self.replica) {
            let problem = format!("there is no replica {} of anything", self.replica);
            return Err(check::invalid(operation, problem));
        }
        let Self { on, id, .. } = self;
        on.read_copy(id, self.replica, false, &self.common).await
    }
}

impl GetAnyReplica<'_> {
    async fn run(self) -> Result<GetReplicaResult> {
        let operation = KvOperation::GetReplica;
        check::key(operation, &self.on.collection, self.id)?;
        let Self { on, id, common } = &self;
        let mut reads: FuturesUnordered<_> = on
            .copies()
            .map(|copy| on.read_copy(id, copy, copy > 0, common))
            .collect();
        let mut worst = None;
        while let Some(read) = reads.next().await {
            match read {
                Ok(found) => return Ok(found),
                Err(error) => worst = Some(graver(worst, error)),
            }
        }
        Err(match worst {
            Some(error) if !is_absence(&error) => error,
            _ => {
                let error = Error::new(ErrorKind::DocumentUnretrievable, operation.name());
                error.because("no copy of the document could be found")
            }
        })
    }
}

impl GetAllReplicas<'_> {
    async fn run(self) -> Result<Vec<GetReplicaResult>> {
        check::key(KvOperation::GetReplica, &self.on.collection, self.id)?;
        let Self { on, id, common } = &self;
        let mut reads: FuturesUnordered<_> = on
            .copies()
            .map(|copy| on.read_copy(id, copy, copy > 0, common))
            .collect();
        let (mut found, mut worst) = (Vec::new(), None);
        while let Some(read) = reads.next().await {
            match read {
                Ok(copy) => found.push(copy),
                Err(error) => worst = Some(graver(worst, error)),
            }
        }
        match worst {
            Some(error) if found.is_empty() && !is_absence(&error) => Err(error),
            _ => Ok(found),
        }
    }
}

/// Whether an error only says that there is nothing to read.
fn is_absence(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DocumentNotFound | ErrorKind::DocumentUnretrievable
    )
}

/// The error that says more than that there is nothing.
fn graver(worst: Option<Error>, error: Error) -> Error {
    match worst {
        Some(worst) if !is_absence(&worst) => worst,
        _ => error,
    }
}

impl GetReplicaResult {
    /// Whether it is a replica, and may be older than the document.
    pub fn is_replica(&self) -> bool {
        self.copy > 0
    }

    /// Which copy it is; 0 is the document itself.
    pub fn copy(&self) -> u8 {
        self.copy
    }

    /// The copy as any document.
    pub fn into_document(self) -> GetResult {
        self.document
    }
}

impl std::ops::Deref for GetReplicaResult {
    type Target = GetResult;

    fn deref(&self) -> &GetResult {
        &self.document
    }
}
