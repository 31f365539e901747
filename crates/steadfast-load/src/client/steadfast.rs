//! This project's own client under the workload.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast::RetryStrategy;
use steadfast_couchbase::collection::MutateInSpec;
use steadfast_couchbase::options::{ReportOptions, TlsOptions};
use steadfast_couchbase::{
    Cluster, ClusterOptions, Collection, Credentials, DurabilityLevel, Error, ErrorKind,
    fast_fail_on_terminal_errors, reason,
};

use super::{Client, Nature, Trouble, Value};
use crate::embedded::{BUCKET, Embedded, PASSWORD, USER};
use crate::measure::{Decisions, Recorder};

/// How long a document is locked at most.
const LOCK: Duration = Duration::from_secs(1);
/// How long a cluster in this process may take to be ready: it is there, and is only slow when
/// the machine is.
const READY: Duration = Duration::from_secs(30);

/// What is looked for in the collection before the run.
const LOOKED_FOR: &str = "steadfast:load:looked-for";

/// Where the documents are, and who one is there.
pub struct Access {
    /// Where the cluster is.
    pub connection_string: String,
    /// Who one is.
    pub credentials: Credentials,
    /// Whom to trust, if not whom the machine trusts.
    pub tls: Option<TlsOptions>,
    /// The bucket.
    pub bucket: String,
    /// The scope and the collection, if not the default one.
    pub collection: Option<(String, String)>,
    /// How long the cluster may take to be ready.
    pub ready_within: Duration,
}

impl Access {
    /// To a cluster of our own.
    pub fn embedded(embedded: &Embedded) -> Self {
        Self {
            connection_string: embedded.cluster().connection_string(),
            credentials: Credentials::password(USER, PASSWORD),
            tls: None,
            bucket: BUCKET.to_owned(),
            collection: None,
            ready_within: READY,
        }
    }
}

/// This project's own client.
#[derive(Clone)]
pub struct Steadfast {
    cluster: Cluster,
    collection: Collection,
    /// Decides about the workload's retries, and about nothing else.
    strategy: Arc<dyn RetryStrategy>,
    /// The collection in statements.
    keyspace: Arc<str>,
}

impl Steadfast {
    /// Connects, waits until the bucket is there, and reads in the collection once: what is
    /// missing or forbidden is to be told now, and not of every operation. The strategy is for the workload, the
    /// client's default if none is given: one that gives up soon must not keep a run from
    /// beginning, since nodes that are not connected yet are no part of what it is tried on.
    ///
    /// Dropping the future closes what was connected.
    ///
    /// # Errors
    /// If it cannot: a [`ConfigError`](steadfast_couchbase::ConfigError) for what makes no sense,
    /// an [`Error`] of the client for the rest.
    pub async fn connect(
        access: Access,
        strategy: Option<Arc<dyn RetryStrategy>>,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        // Before the first operation, or it counts nothing.
        Recorder::installed();
        // Requests that are slow and answers that are late are what this is about, and no news.
        let reports = ReportOptions::new().slow_requests(false).orphans(false);
        let mut options = ClusterOptions::new()
            .reports(reports)
            .kv_timeout(timeout)
            .kv_durable_timeout(timeout * 2)
            .query_timeout(timeout * 2);
        if let Some(tls) = access.tls {
            options.tls = tls;
        }
        let string = &access.connection_string;
        let cluster = Cluster::connect_with(string, access.credentials, options).await?;
        let bucket = cluster.bucket(&access.bucket);
        bucket.wait_until_ready(access.ready_within).await?;
        let (collection, keyspace) = match &access.collection {
            Some((scope, name)) => {
                let keyspace = format!("`{}`.`{scope}`.`{name}`", access.bucket);
                (bucket.collection(scope, name), keyspace)
            }
            None => (bucket.default_collection(), format!("`{}`", access.bucket)),
        };
        is_there(&collection, access.ready_within).await?;
        Ok(Self {
            cluster,
            collection,
            strategy: strategy.unwrap_or_else(|| Arc::new(fast_fail_on_terminal_errors())),
            keyspace: keyspace.into(),
        })
    }
    fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.strategy.clone()
    }
}

/// Reads a document that nobody writes. Whether it is there is of no interest, but the
/// collection must be.
///
/// Dropping the future abandons the read.
async fn is_there(collection: &Collection, within: Duration) -> Result<(), Error> {
    match collection.get(LOOKED_FOR).timeout(within).await {
        Err(error) if error.kind() != ErrorKind::DocumentNotFound => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

impl Client for Steadfast {
    async fn get(&self, key: &str) -> Result<Bytes, Trouble> {
        let document = self
            .collection
            .get(key)
            .retry_shared(self.strategy())
            .await?;
        Ok(document.bytes().clone())
    }

    async fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> Result<(), Trouble> {
        let upsert = self.collection.upsert(key, value);
        let upsert = upsert.retry_shared(self.strategy());
        if durable {
            upsert.durability(DurabilityLevel::Majority).await?;
        } else {
            upsert.await?;
        }
        Ok(())
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<(), Trouble> {
        let insert = self.collection.insert(key, value);
        insert.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), Trouble> {
        let remove = self.collection.remove(key);
        remove.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<(), Trouble> {
        let increment = self.collection.increment(key).delta(delta);
        increment.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn append(&self, key: &str, bytes: String) -> Result<(), Trouble> {
        let append = self.collection.append(key, bytes);
        append.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<(), Trouble> {
        let specs = [MutateInSpec::array_append("a", [element])];
        let mutate_in = self.collection.mutate_in(key, &specs);
        mutate_in.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn select(&self, key: &str) -> Result<Option<String>, Trouble> {
        let statement = format!("SELECT RAW d.id FROM {} AS d USE KEYS $key", self.keyspace);
        let query = self.cluster.query(statement).readonly(true);
        let query = query.retry_shared(self.strategy());
        let mut rows = query.named("key", key)?.await?;
        let ids: Vec<String> = rows.all().await?;
        Ok(ids.into_iter().next())
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), Trouble> {
        let statement = format!(
            "INSERT INTO {} (KEY, VALUE) VALUES ($key, $value)",
            self.keyspace
        );
        let query = self.cluster.query(statement);
        let query = query.retry_shared(self.strategy());
        let mut rows = query.named("key", key)?.named("value", value)?.await?;
        rows.all::<serde::de::IgnoredAny>().await?;
        Ok(())
    }

    async fn lock(&self, key: &str) -> Result<u64, Trouble> {
        let lock = self.collection.get_and_lock(key, LOCK);
        let locked = lock.retry_shared(self.strategy()).await?;
        Ok(locked.cas())
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), Trouble> {
        let unlock = self.collection.unlock(key, cas);
        Ok(unlock.retry_shared(self.strategy()).await?)
    }

    fn set_password(&self, user: &str, password: &str) {
        let credentials = Credentials::password(user, password);
        if let Err(error) = self.cluster.set_credentials(credentials) {
            tracing::warn!(%error, "the new credentials make no sense");
        }
    }

    fn decisions(&self) -> Decisions {
        Recorder::installed().decisions()
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self {
            nature: nature(&error),
            ambiguous: error.is_ambiguous(),
            timeout: error.is_timeout(),
            name: error.kind().name().to_owned(),
            history: format!("{error:#}"),
        }
    }
}

/// A timeout explains itself. Durability can be impossible or unsure while a node is missing, and
/// the query service has errors of its own then. Other errors are explained by a reason for which
/// they were not retried, or not any longer, if the fault is the cluster's: that a document exists
/// or a path does not is never explained by an attempt that failed before.
fn nature(error: &Error) -> Nature {
    match error.kind() {
        ErrorKind::DocumentNotFound => Nature::NotFound,
        ErrorKind::AuthenticationFailure => Nature::Authentication,
        ErrorKind::AmbiguousTimeout
        | ErrorKind::UnambiguousTimeout
        | ErrorKind::DurabilityImpossible
        | ErrorKind::DurabilityAmbiguous => Nature::Explained,
        ErrorKind::DmlFailure | ErrorKind::IndexFailure
            if error
                .context()
                .http()
                .is_some_and(|http| http.code.is_some()) =>
        {
            Nature::Explained
        }
        ErrorKind::RequestCanceled
        | ErrorKind::ServiceNotAvailable
        | ErrorKind::InternalServerFailure
        | ErrorKind::TemporaryFailure
        | ErrorKind::DocumentLocked
        | ErrorKind::DurableWriteInProgress
        | ErrorKind::DurableWriteReCommitInProgress
            if !error.reasons().is_empty() =>
        {
            if error.reasons().contains(&reason::AUTHENTICATION_ERROR) {
                Nature::Authentication
            } else {
                Nature::Explained
            }
        }
        _ => Nature::Unexplained,
    }
}
