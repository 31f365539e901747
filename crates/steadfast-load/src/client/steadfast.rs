//! Adapter for this project's own client.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use steadfast::{Backoff, Jitter, RetryStrategy};
use steadfast_couchbase::collection::{GetResult, LookupInSpec, MutateInSpec};
use steadfast_couchbase::options::{ReportOptions, TlsOptions};
use steadfast_couchbase::{
    Cluster, ClusterOptions, Collection, Credentials, DurabilityLevel, ErrorKind,
    fast_fail_on_terminal_errors,
};

use super::{Client, ClientError, Content, Counted, SideClient, SideFuture, SidePlace, Value};
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
    /// Whether the workload may use statements, if the cluster has a query service.
    pub statements: bool,
}

impl Access {
    /// Returns access to an embedded cluster, with TLS if the cluster has it. The client then
    /// trusts the cluster's authority, and so every certificate that it signs.
    pub fn embedded(embedded: &Embedded) -> Self {
        let cluster = embedded.cluster();
        let tls = cluster.ca_pem();
        Self {
            connection_string: cluster
                .tls_connection_string()
                .unwrap_or_else(|| cluster.connection_string()),
            credentials: Credentials::password(USER, PASSWORD),
            tls: tls.map(|authority| TlsOptions::new().trust_pem(authority)),
            bucket: BUCKET.to_owned(),
            collection: None,
            ready_within: READY,
            statements: true,
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
    has_query: bool,
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
    /// A [`ConfigError`](steadfast_couchbase::ConfigError) for invalid settings, else an
    /// [`Error`](steadfast_couchbase::Error) of the client.
    pub async fn connect(
        access: Access,
        strategy: Option<Arc<dyn RetryStrategy>>,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        // It counts only what happens after it is installed.
        RetryRecorder::global();
        // Slow requests and late answers are expected here.
        let reports = ReportOptions::new().slow_requests(false).orphans(false);
        // The workload is one client and no herd, and it shall find nodes again quickly.
        let reconnect = Backoff::exponential(Duration::from_millis(2), Duration::from_secs(1))?;
        let mut options = ClusterOptions::new()
            .reports(reports)
            .reconnect_backoff(reconnect.with_jitter(Jitter::Equal))
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
        let has_query = access.statements && {
            // A service that is listed counts, whether it answers or not.
            let pinged = cluster.ping().await;
            pinged.endpoints.iter().any(|one| one.service == "query")
        };
        Ok(Self {
            has_query,
            cluster,
            collection,
            strategy: strategy.unwrap_or_else(|| Arc::new(fast_fail_on_terminal_errors())),
            keyspace: keyspace.into(),
        })
    }

    /// Checks that the user may write: a document that does not exist can be removed.
    ///
    /// # Errors
    /// An [`Error`](steadfast_couchbase::Error) of the client.
    pub async fn check_writes(&self) -> anyhow::Result<()> {
        match self.collection.remove(PROBE).await {
            Err(error) if error.kind() != ErrorKind::DocumentNotFound => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn beside(&self, at: SidePlace) -> Collection {
        self.cluster
            .bucket(at.bucket)
            .collection("_default", at.collection)
    }

    fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.strategy.clone()
    }
}

impl Client for Steadfast {
    async fn get(&self, key: &str) -> Result<Content, ClientError> {
        let get = self.collection.get(key);
        Ok(content(&get.retry(self.strategy()).await?, None))
    }

    async fn get_with_expiry(&self, key: &str) -> Result<Content, ClientError> {
        let get = self.collection.get(key).with_expiry();
        let found = get.retry(self.strategy()).await?;
        let expiry = found.expiry().map_or(0, |at| {
            let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
        });
        Ok(content(&found, Some(expiry)))
    }

    async fn lookup_array(&self, key: &str) -> Result<Content, ClientError> {
        let specs = [LookupInSpec::get("a")];
        let lookup = self.collection.lookup_in(key, &specs);
        let found = lookup.retry(self.strategy()).await?;
        Ok(Content {
            value: found.bytes(0)?.clone(),
            cas: found.cas(),
            flags: None,
            expiry: None,
        })
    }

    async fn upsert(
        &self,
        key: &str,
        value: &Value<'_>,
        durable: bool,
    ) -> Result<u64, ClientError> {
        let upsert = self.collection.upsert(key, value);
        let upsert = upsert.retry(self.strategy());
        let written = if durable {
            upsert.durability(DurabilityLevel::Majority).await?
        } else {
            upsert.await?
        };
        Ok(written.cas())
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<u64, ClientError> {
        let insert = self.collection.insert(key, value);
        Ok(insert.retry(self.strategy()).await?.cas())
    }

    async fn replace(&self, key: &str, value: &Value<'_>, cas: u64) -> Result<u64, ClientError> {
        let replace = self.collection.replace(key, value).cas(cas);
        Ok(replace.retry(self.strategy()).await?.cas())
    }

    async fn remove(&self, key: &str) -> Result<u64, ClientError> {
        let remove = self.collection.remove(key);
        Ok(remove.retry(self.strategy()).await?.cas())
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<Counted, ClientError> {
        let increment = self.collection.increment(key).delta(delta);
        let counted = increment.retry(self.strategy()).await?;
        Ok(Counted {
            value: counted.value(),
            cas: counted.cas(),
        })
    }

    async fn append(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let append = self.collection.append(key, bytes);
        Ok(append.retry(self.strategy()).await?.cas())
    }

    async fn prepend(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let prepend = self.collection.prepend(key, bytes);
        Ok(prepend.retry(self.strategy()).await?.cas())
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<u64, ClientError> {
        let specs = [MutateInSpec::array_append("a", [element])];
        let mutate_in = self.collection.mutate_in(key, &specs);
        Ok(mutate_in.retry(self.strategy()).await?.cas())
    }

    async fn touch(&self, key: &str, expiry: u32) -> Result<u64, ClientError> {
        let at = UNIX_EPOCH + Duration::from_secs(u64::from(expiry));
        let touch = self.collection.touch(key, at);
        Ok(touch.retry(self.strategy()).await?.cas())
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        let statement = format!("SELECT RAW d.id FROM {} AS d USE KEYS $key", self.keyspace);
        let query = self.cluster.query(statement).readonly(true);
        let query = query.retry(self.strategy());
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
        let query = query.retry(self.strategy());
        let mut rows = query.named("key", key)?.named("value", value)?.await?;
        rows.all::<serde::de::IgnoredAny>().await?;
        Ok(())
    }

    async fn lock(&self, key: &str) -> Result<Content, ClientError> {
        let lock = self.collection.get_and_lock(key, LOCK);
        Ok(content(&lock.retry(self.strategy()).await?, None))
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), ClientError> {
        let unlock = self.collection.unlock(key, cas);
        Ok(unlock.retry(self.strategy()).await?)
    }

    fn has_query(&self) -> bool {
        self.has_query
    }

    fn side(&self) -> Option<Arc<dyn SideClient>> {
        Some(Arc::new(self.clone()))
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

fn content(found: &GetResult, expiry: Option<u32>) -> Content {
    Content {
        value: found.bytes().clone(),
        cas: found.cas(),
        flags: Some(found.flags()),
        expiry,
    }
}

impl SideClient for Steadfast {
    fn upsert(&self, at: SidePlace, key: String, durable: bool) -> SideFuture<'_, ()> {
        Box::pin(async move {
            let collection = self.beside(at);
            let upsert = collection.upsert(&key, &"beside");
            let upsert = upsert.retry(self.strategy());
            if durable {
                upsert.durability(DurabilityLevel::Majority).await?;
            } else {
                upsert.await?;
            }
            Ok(())
        })
    }

    fn exists(&self, at: SidePlace, key: String) -> SideFuture<'_, bool> {
        Box::pin(async move {
            let collection = self.beside(at);
            match collection.get(&key).retry(self.strategy()).await {
                Ok(_) => Ok(true),
                Err(error) if error.kind() == ErrorKind::DocumentNotFound => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn insert_rows(&self, at: SidePlace, keys: Vec<String>) -> SideFuture<'_, ()> {
        Box::pin(async move {
            let rows: Vec<String> = keys
                .iter()
                .map(|key| format!("VALUES (\"{key}\", 1)"))
                .collect();
            let (bucket, collection) = (at.bucket, at.collection);
            let rows = rows.join(", ");
            let statement = format!("INSERT INTO `{bucket}`.`_default`.`{collection}` {rows}");
            let query = self.cluster.query(statement).retry(self.strategy());
            query.await?.all::<serde::de::IgnoredAny>().await?;
            Ok(())
        })
    }
}
