//! The official Rust SDK, unmodified, under the workload.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use couchbase::authenticator::PasswordAuthenticator;
use couchbase::cluster::Cluster;
use couchbase::collection::Collection;
use couchbase::durability_level::DurabilityLevel;
use couchbase::error::{Error, ErrorKind};
use couchbase::options::cluster_options::ClusterOptions;
use couchbase::options::kv_binary_options::IncrementOptions;
use couchbase::options::kv_options::{GetOptions, ReplaceOptions, UpsertOptions};
use couchbase::options::query_options::QueryOptions;
use couchbase::results::kv_results::GetResult;
use couchbase::subdoc::lookup_in_specs::LookupInSpec;
use couchbase::subdoc::mutate_in_specs::MutateInSpec;
use futures_util::StreamExt;
use steadfast_load::client::{Client, ClientError, Content, Counted, ErrorClass, Value};

const LOCK: Duration = Duration::from_secs(1);

/// The official SDK. It leaves timeouts to the application, so they are made here.
#[derive(Clone)]
pub struct Official {
    cluster: Cluster,
    collection: Collection,
    bucket: String,
    timeout: Duration,
}

impl Official {
    pub async fn connect(
        address: &str,
        user: &str,
        password: &str,
        bucket: &str,
        timeout: Duration,
    ) -> anyhow::Result<Self> {
        let options = ClusterOptions::new(PasswordAuthenticator::new(user, password).into());
        let cluster = Cluster::connect(address, options).await?;
        Ok(Self {
            collection: cluster.bucket(bucket).default_collection(),
            cluster,
            bucket: bucket.to_owned(),
            timeout,
        })
    }

    async fn read<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ClientError> {
        within(self.timeout, false, operation).await
    }

    async fn write<T>(
        &self,
        operation: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ClientError> {
        within(self.timeout, true, operation).await
    }
}

impl Client for Official {
    async fn get(&self, key: &str) -> Result<Content, ClientError> {
        let found = self.read(self.collection.get(key, None)).await?;
        Ok(content(&found))
    }

    /// Without the expiry: the SDK takes only times from now, so the exact second is not known.
    async fn get_with_expiry(&self, key: &str) -> Result<Content, ClientError> {
        let options = GetOptions::new().expiry(true);
        let found = self.read(self.collection.get(key, options)).await?;
        Ok(content(&found))
    }

    async fn lookup_array(&self, key: &str) -> Result<Content, ClientError> {
        let specs = [LookupInSpec::get("a", None)];
        let found = self
            .read(self.collection.lookup_in(key, &specs, None))
            .await?;
        let value = found
            .content_as_raw(0)
            .map_err(|error| client_error(&error, false))?;
        Ok(Content {
            value,
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
        let mut options = UpsertOptions::new();
        let mut timeout = self.timeout;
        if durable {
            options = options.durability_level(DurabilityLevel::MAJORITY);
            timeout *= 2;
        }
        let upsert = self.collection.upsert(key, value, options);
        Ok(within(timeout, true, upsert).await?.cas())
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<u64, ClientError> {
        let insert = self.collection.insert(key, value, None);
        Ok(self.write(insert).await?.cas())
    }

    async fn replace(&self, key: &str, value: &Value<'_>, cas: u64) -> Result<u64, ClientError> {
        let options = ReplaceOptions::new().cas(cas);
        let replace = self.collection.replace(key, value, options);
        Ok(self.write(replace).await?.cas())
    }

    async fn remove(&self, key: &str) -> Result<u64, ClientError> {
        Ok(self.write(self.collection.remove(key, None)).await?.cas())
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<Counted, ClientError> {
        let options = IncrementOptions::new().delta(delta);
        let counters = self.collection.binary();
        let counted = self.write(counters.increment(key, options)).await?;
        Ok(Counted {
            value: counted.content(),
            cas: counted.cas(),
        })
    }

    async fn append(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let texts = self.collection.binary();
        let append = texts.append(key, bytes.as_bytes(), None);
        Ok(self.write(append).await?.cas())
    }

    async fn prepend(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let texts = self.collection.binary();
        let prepend = texts.prepend(key, bytes.as_bytes(), None);
        Ok(self.write(prepend).await?.cas())
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<u64, ClientError> {
        let specs = MutateInSpec::array_append("a", &[element], None).map(|spec| [spec]);
        let mutate_in = async { self.collection.mutate_in(key, &specs?, None).await };
        Ok(self.write(mutate_in).await?.cas())
    }

    async fn touch(&self, key: &str, expiry: u32) -> Result<u64, ClientError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let after = Duration::from_secs(u64::from(expiry)).saturating_sub(now);
        let touch = self.collection.touch(key, after, None);
        Ok(self.write(touch).await?.cas())
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        let statement = format!("SELECT RAW d.id FROM `{}` AS d USE KEYS $key", self.bucket);
        let selected = async {
            let options = QueryOptions::new().read_only(true);
            let options = options.add_named_parameter("key", key)?;
            let mut result = self.cluster.query(statement, options).await?;
            result.rows::<String>().next().await.transpose()
        };
        within(self.timeout * 2, false, selected).await
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
        let statement = format!(
            "INSERT INTO `{}` (KEY, VALUE) VALUES ($key, $value)",
            self.bucket
        );
        let inserted = async {
            let options = QueryOptions::new().add_named_parameter("key", key)?;
            let options = options.add_named_parameter("value", value)?;
            let mut result = self.cluster.query(statement, options).await?;
            match result.rows::<serde_json::Value>().next().await {
                Some(Err(error)) => Err(error),
                Some(Ok(_)) | None => Ok(()),
            }
        };
        within(self.timeout * 2, true, inserted).await
    }

    async fn lock(&self, key: &str) -> Result<Content, ClientError> {
        let locked = self.collection.get_and_lock(key, LOCK, None);
        Ok(content(&self.read(locked).await?))
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), ClientError> {
        self.read(self.collection.unlock(key, cas, None)).await
    }

    fn set_password(&self, user: &str, password: &str) {
        let authenticator = PasswordAuthenticator::new(user, password);
        let cluster = self.cluster.clone();
        let set = async move { cluster.set_authenticator(authenticator.into()).await };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(set)),
            Err(_) => eprintln!("there is no runtime to set the new password on"),
        }
    }
}

fn content(found: &GetResult) -> Content {
    let (value, flags) = found.content_as_raw();
    Content {
        value: Bytes::copy_from_slice(value),
        cas: found.cas(),
        flags: Some(flags),
        expiry: None,
    }
}

async fn within<T>(
    timeout: Duration,
    writes: bool,
    operation: impl Future<Output = Result<T, Error>>,
) -> Result<T, ClientError> {
    match tokio::time::timeout(timeout, operation).await {
        Ok(ended) => ended.map_err(|error| client_error(&error, writes)),
        Err(_) => Err(ClientError {
            class: ErrorClass::Explained,
            ambiguous: writes,
            timeout: true,
            name: "Timeout".to_owned(),
            history: format!("no answer within {timeout:?}"),
        }),
    }
}

/// Classifies an error of the SDK. It does not say whether a write may have been applied, so
/// every error that is not an answer of the server counts as ambiguous.
fn client_error(error: &Error, writes: bool) -> ClientError {
    let (class, answered) = match error.kind() {
        ErrorKind::DocumentNotFound => (ErrorClass::NotFound, true),
        ErrorKind::DocumentExists => (ErrorClass::Exists, true),
        ErrorKind::CasMismatch => (ErrorClass::CasMismatch, true),
        ErrorKind::AuthenticationFailure => (ErrorClass::Authentication, true),
        ErrorKind::RequestCanceled
        | ErrorKind::OtherFailure(_)
        | ErrorKind::ServerTimeout
        | ErrorKind::DurabilityAmbiguous => (ErrorClass::Explained, false),
        ErrorKind::DurabilityImpossible
        | ErrorKind::TemporaryFailure
        | ErrorKind::InternalServerFailure
        | ErrorKind::ServiceNotAvailable(_)
        | ErrorKind::DMLFailure
        | ErrorKind::IndexFailure
        | ErrorKind::DocumentLocked => (ErrorClass::Explained, true),
        _ => (ErrorClass::Unexplained, true),
    };
    let name = format!("{:?}", error.kind());
    ClientError {
        class,
        ambiguous: writes && !answered,
        timeout: false,
        name: name.split(['(', ' ']).next().unwrap_or_default().to_owned(),
        history: error.to_string(),
    }
}
