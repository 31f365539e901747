//! This project's own client under the workload.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use steadfast::RetryStrategy;
use steadfast_couchbase::collection::MutateInSpec;
use steadfast_couchbase::options::{ReportOptions, TlsOptions};
use steadfast_couchbase::{
    Cluster, ClusterOptions, Collection, Credentials, DurabilityLevel, Error, ErrorKind, reason,
};

use super::{Client, Nature, Trouble, Value};
use crate::embedded::{BUCKET, Embedded, PASSWORD, USER};
use crate::measure::{Decisions, Recorder};

/// How long a document is locked at most.
const LOCK: Duration = Duration::from_secs(1);
/// How long the first connection may take.
const READY: Duration = Duration::from_secs(10);

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
        }
    }
}

/// This project's own client.
#[derive(Clone)]
pub struct Steadfast {
    cluster: Cluster,
    collection: Collection,
    /// The collection in statements.
    keyspace: Arc<str>,
}

impl Steadfast {
    /// Connects, and waits until the bucket is there.
    ///
    /// Dropping the future closes what was connected.
    ///
    /// # Errors
    /// If it cannot, and why.
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
        options.retry_strategy = strategy;
        if let Some(tls) = access.tls {
            options.tls = tls;
        }
        let string = &access.connection_string;
        let cluster = Cluster::connect_with(string, access.credentials, options).await?;
        let bucket = cluster.bucket(&access.bucket);
        bucket
            .wait_until_ready(READY)
            .await
            .with_context(|| format!("cannot use the bucket {:?}", bucket.name()))?;
        let (collection, keyspace) = match &access.collection {
            Some((scope, name)) => {
                let keyspace = format!("`{}`.`{scope}`.`{name}`", access.bucket);
                (bucket.collection(scope, name), keyspace)
            }
            None => (bucket.default_collection(), format!("`{}`", access.bucket)),
        };
        Ok(Self {
            cluster,
            collection,
            keyspace: keyspace.into(),
        })
    }
}

impl Client for Steadfast {
    async fn get(&self, key: &str) -> Result<Bytes, Trouble> {
        let document = self.collection.get(key).await?;
        Ok(document.bytes().clone())
    }

    async fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> Result<(), Trouble> {
        let upsert = self.collection.upsert(key, value);
        if durable {
            upsert.durability(DurabilityLevel::Majority).await?;
        } else {
            upsert.await?;
        }
        Ok(())
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<(), Trouble> {
        self.collection.insert(key, value).await?;
        Ok(())
    }

    async fn remove(&self, key: &str) -> Result<(), Trouble> {
        self.collection.remove(key).await?;
        Ok(())
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<(), Trouble> {
        self.collection.increment(key).delta(delta).await?;
        Ok(())
    }

    async fn append(&self, key: &str, bytes: String) -> Result<(), Trouble> {
        self.collection.append(key, bytes).await?;
        Ok(())
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<(), Trouble> {
        let specs = [MutateInSpec::array_append("a", [element])];
        self.collection.mutate_in(key, &specs).await?;
        Ok(())
    }

    async fn select(&self, key: &str) -> Result<Option<String>, Trouble> {
        let statement = format!("SELECT RAW d.id FROM {} AS d USE KEYS $key", self.keyspace);
        let query = self.cluster.query(statement).readonly(true);
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
        let mut rows = query.named("key", key)?.named("value", value)?.await?;
        rows.all::<serde::de::IgnoredAny>().await?;
        Ok(())
    }

    async fn lock(&self, key: &str) -> Result<u64, Trouble> {
        let locked = self.collection.get_and_lock(key, LOCK).await?;
        Ok(locked.cas())
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), Trouble> {
        Ok(self.collection.unlock(key, cas).await?)
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
