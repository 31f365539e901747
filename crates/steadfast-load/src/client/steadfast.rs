//! Adapter for this project's own client.

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

use super::{Client, ClientError, ErrorClass, Value};
use crate::embedded::{BUCKET, Embedded, PASSWORD, USER};
use crate::measure::{RetryCounts, RetryRecorder};

/// The longest time for which a document is locked.
const LOCK: Duration = Duration::from_secs(1);
/// How long an embedded cluster may take to be ready. It is slow only if the machine is.
const READY: Duration = Duration::from_secs(30);

/// The key that is read before the run, to check that the collection exists.
const PROBE: &str = "steadfast:load:probe";

/// The cluster and the collection to use, with credentials.
pub struct Access {
    /// The addresses of the cluster.
    pub connection_string: String,
    /// The user.
    pub credentials: Credentials,
    /// The TLS settings; the defaults if none.
    pub tls: Option<TlsOptions>,
    /// The bucket.
    pub bucket: String,
    /// The scope and the collection; the default collection if none.
    pub collection: Option<(String, String)>,
    /// How long the cluster may take to be ready.
    pub ready_within: Duration,
}

impl Access {
    /// Returns access to an embedded cluster.
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
    /// Decides about the workload's retries only.
    strategy: Arc<dyn RetryStrategy>,
    /// The collection as queries name it.
    keyspace: Arc<str>,
}

impl Steadfast {
    /// Connects, waits until the bucket is ready, and reads in the collection once, so that a
    /// missing collection or missing rights are reported before the run. The strategy (the
    /// client's default if none) is for the workload only: a strategy that gives up early must
    /// not prevent the start.
    ///
    /// Dropping the future closes what was connected.
    ///
    /// # Errors
    /// A [`ConfigError`](steadfast_couchbase::ConfigError) for invalid settings, else an [`Error`]
    /// of the client.
    pub async fn connect(
        access: Access,
        strategy: Option<Arc<dyn RetryStrategy>>,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        // It counts only what happens after it is installed.
        RetryRecorder::global();
        // Slow requests and late answers are expected here.
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
        match collection.get(PROBE).timeout(access.ready_within).await {
            Err(error) if error.kind() != ErrorKind::DocumentNotFound => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
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

impl Client for Steadfast {
    async fn get(&self, key: &str) -> Result<Bytes, ClientError> {
        let document = self
            .collection
            .get(key)
            .retry_shared(self.strategy())
            .await?;
        Ok(document.bytes().clone())
    }

    async fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> Result<(), ClientError> {
        let upsert = self.collection.upsert(key, value);
        let upsert = upsert.retry_shared(self.strategy());
        if durable {
            upsert.durability(DurabilityLevel::Majority).await?;
        } else {
            upsert.await?;
        }
        Ok(())
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
        let insert = self.collection.insert(key, value);
        insert.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), ClientError> {
        let remove = self.collection.remove(key);
        remove.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<(), ClientError> {
        let increment = self.collection.increment(key).delta(delta);
        increment.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn append(&self, key: &str, bytes: String) -> Result<(), ClientError> {
        let append = self.collection.append(key, bytes);
        append.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<(), ClientError> {
        let specs = [MutateInSpec::array_append("a", [element])];
        let mutate_in = self.collection.mutate_in(key, &specs);
        mutate_in.retry_shared(self.strategy()).await?;
        Ok(())
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        let statement = format!("SELECT RAW d.id FROM {} AS d USE KEYS $key", self.keyspace);
        let query = self.cluster.query(statement).readonly(true);
        let query = query.retry_shared(self.strategy());
        let mut rows = query.named("key", key)?.await?;
        let ids: Vec<String> = rows.all().await?;
        Ok(ids.into_iter().next())
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
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

    async fn lock(&self, key: &str) -> Result<u64, ClientError> {
        let lock = self.collection.get_and_lock(key, LOCK);
        let locked = lock.retry_shared(self.strategy()).await?;
        Ok(locked.cas())
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), ClientError> {
        let unlock = self.collection.unlock(key, cas);
        Ok(unlock.retry_shared(self.strategy()).await?)
    }

    fn set_password(&self, user: &str, password: &str) {
        let credentials = Credentials::password(user, password);
        if let Err(error) = self.cluster.set_credentials(credentials) {
            tracing::warn!(%error, "the new credentials are invalid");
        }
    }

    fn retry_counts(&self) -> RetryCounts {
        RetryRecorder::global().retry_counts()
    }
}

impl From<Error> for ClientError {
    fn from(error: Error) -> Self {
        Self {
            class: class(&error),
            ambiguous: error.is_ambiguous(),
            timeout: error.is_timeout(),
            name: error.kind().name().to_owned(),
            history: format!("{error:#}"),
        }
    }
}

/// Classifies an error. Faults explain timeouts, errors of durability, and errors of the query
/// service. Other errors of the cluster are explained if an attempt failed for a reason that may be
/// retried. Errors such as "document exists" are never explained by an earlier failed attempt.
fn class(error: &Error) -> ErrorClass {
    match error.kind() {
        ErrorKind::DocumentNotFound => ErrorClass::NotFound,
        ErrorKind::AuthenticationFailure => ErrorClass::Authentication,
        ErrorKind::AmbiguousTimeout
        | ErrorKind::UnambiguousTimeout
        | ErrorKind::DurabilityImpossible
        | ErrorKind::DurabilityAmbiguous => ErrorClass::Explained,
        ErrorKind::DmlFailure | ErrorKind::IndexFailure
            if error
                .context()
                .http()
                .is_some_and(|http| http.code.is_some()) =>
        {
            ErrorClass::Explained
        }
        ErrorKind::RequestCanceled
        | ErrorKind::ServiceNotAvailable
        | ErrorKind::InternalServerFailure
        | ErrorKind::TemporaryFailure
        | ErrorKind::DocumentLocked
        | ErrorKind::DurableWriteInProgress
        | ErrorKind::DurableWriteReCommitInProgress
            // An unknown reason explains nothing.
            if error.reasons().iter().any(|seen| seen != &reason::UNKNOWN) =>
        {
            if error.reasons().contains(&reason::AUTHENTICATION_ERROR) {
                ErrorClass::Authentication
            } else {
                ErrorClass::Explained
            }
        }
        _ => ErrorClass::Unexplained,
    }
}
