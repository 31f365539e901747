//! Reads replicas of a document.
//!
//! A replica may be older than the document, but can be read while the document's
//! node is unreachable (SDK RFC 0053). These operations are idempotent, so their
//! timeouts are never ambiguous.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::options::operation;
use super::{Collection, GetResult};
use crate::error::{Error, ErrorKind, Result};
use crate::kv::operation::KvOperation;
use crate::kv::request::KvRequest;
use crate::kv::response::KvResponse;

/// The largest number of replicas of a bucket.
const MAX_REPLICAS: u8 = 3;

operation! {
    /// Reads one replica; see [`Collection::get_replica`].
    GetReplica {} => GetReplicaResult, prepare
}

operation! {
    /// Reads the copy that answers first; see [`Collection::get_any_replica`].
    GetAnyReplica {} => GetReplicaResult, run
}

operation! {
    /// Reads all copies; see [`Collection::get_all_replicas`].
    GetAllReplicas {} => Vec<GetReplicaResult>, run
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
        let mut request = KvRequest::new(self, KvOperation::GetReplica, id);
        request.copy = replica;
        GetReplica { request }
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
        let request = KvRequest::new(self, KvOperation::GetReplica, id);
        GetAnyReplica { request }
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
        let request = KvRequest::new(self, KvOperation::GetReplica, id);
        GetAllReplicas { request }
    }
}

impl GetReplica<'_> {
    fn prepare(&mut self) -> Result<()> {
        let replica = self.request.copy;
        if !(1..=MAX_REPLICAS).contains(&replica) {
            let problem = format!("there is no replica {replica}: use 1 to {MAX_REPLICAS}");
            return Err(self.request.invalid(problem));
        }
        Ok(())
    }
}

impl GetAnyReplica<'_> {
    /// Cancel-safe: dropping the future abandons all reads.
    async fn run(self) -> Result<GetReplicaResult> {
        let mut reads = read_all_copies(&self.request)?;
        let mut worst = None;
        while let Some(read) = reads.next().await {
            match read {
                Ok(found) => return Ok(found),
                Err(error) => worst = Some(worse(worst, error)),
            }
        }
        Err(match worst {
            Some(error) if !is_absence(&error) => error,
            _ => {
                let operation = self.request.operation.name();
                let error = Error::new(ErrorKind::DocumentUnretrievable, operation);
                error.because("no copy of the document was found")
            }
        })
    }
}

impl GetAllReplicas<'_> {
    /// Cancel-safe: dropping the future abandons all reads.
    async fn run(self) -> Result<Vec<GetReplicaResult>> {
        let mut reads = read_all_copies(&self.request)?;
        let (mut found, mut worst) = (Vec::new(), None);
        while let Some(read) = reads.next().await {
            match read {
                Ok(copy) => found.push(copy),
                Err(error) => worst = Some(worse(worst, error)),
            }
        }
        match worst {
            Some(error) if found.is_empty() && !is_absence(&error) => Err(error),
            _ => Ok(found),
        }
    }
}

/// Cancel-safe: dropping the future abandons the read.
async fn read_copy(request: KvRequest<'_>) -> Result<GetReplicaResult> {
    request.execute_and_read(GetReplicaResult::read).await
}

/// Starts to read the document and all its replicas. Without a config their number
/// is unknown, and each read finds out whether its copy exists.
fn read_all_copies<'a>(
    request: &KvRequest<'a>,
) -> Result<FuturesUnordered<impl Future<Output = Result<GetReplicaResult>> + use<'a>>> {
    request.check()?;
    let routes = request.bucket().routes.load();
    let replicas = routes.as_ref().map_or(usize::MAX, |it| it.replicas());
    let replicas = u8::try_from(replicas).map_or(MAX_REPLICAS, |it| it.min(MAX_REPLICAS));
    let reads = (0..=replicas).map(|copy| {
        let mut request = request.clone();
        request.copy = copy;
        if copy == 0 {
            request.operation = KvOperation::Get;
        } else {
            request.skip_missing_copy = true;
        }
        read_copy(request)
    });
    Ok(reads.collect())
}

/// Returns whether an error only says that there is nothing to read.
fn is_absence(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DocumentNotFound | ErrorKind::DocumentUnretrievable
    )
}

/// Prefers the error that says more than "nothing to read".
fn worse(worst: Option<Error>, error: Error) -> Error {
    match worst {
        Some(worst) if !is_absence(&worst) => worst,
        _ => error,
    }
}

impl GetReplicaResult {
    fn read(response: KvResponse<'_>) -> Result<Self> {
        let copy = response.copy;
        let document = GetResult::read(response)?;
        Ok(Self { document, copy })
    }

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
