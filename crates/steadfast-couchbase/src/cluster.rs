//! The client's handle on a cluster: its buckets and its services.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use serde::Serialize;
use steadfast_wire::config::Service;
use tokio_rustls::TlsConnector;

use crate::bucket::Bucket;
use crate::client::Core;
use crate::config_error::ConfigError;
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::dns;
use crate::error::Error;
use crate::options::ClusterOptions;
use crate::services::analytics::{self, Analytics};
use crate::services::management::Management;
use crate::services::query::{self, Query};
use crate::services::search::{self, Search};
use crate::tls;

/// A client of a cluster. Cheap to clone; all clones share the connections.
///
/// ```no_run
/// use steadfast_couchbase::{Cluster, Credentials};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let cluster = Cluster::connect("couchbases://db.example.com", Credentials::password("app", "secret")).await?;
/// let users = cluster.bucket("travel").collection("inventory", "users");
/// users.upsert("u:42", &"Ada").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    handle: Arc<Handle>,
}

/// The ownership of a client, which is closed when its last handle is dropped.
/// Builders and rows hold one too, so a client stays open while rows are read.
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
}

impl Handle {
    /// Returns the header `Authorization`, marked sensitive; `None` if a client
    /// certificate identifies the user.
    ///
    /// Without TLS a token is not sent unless that was allowed, because everybody on
    /// the network could read it. A password is sent: HTTP without TLS has nothing
    /// better.
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let credentials = self.core.credentials();
        let trusted = self.core.tls.is_some() || self.core.options.allow_secrets_without_tls;
        if credentials.user().is_none() && !trusted {
            return None;
        }
        let text = credentials.authorization()?;
        // Credentials that are not a valid header were rejected when they were set.
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// Returns the default timeout of a service's operations.
    pub(crate) fn timeout(&self, service: Service) -> Duration {
        let options = &self.core.options;
        match service {
            Service::KeyValue => options.kv_timeout,
            Service::Management => options.management_timeout,
            Service::Query => options.query_timeout,
            Service::Search => options.search_timeout,
            Service::Analytics => options.analytics_timeout,
            Service::Views => options.view_timeout,
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Cluster {
    /// Makes a client with the default options.
    ///
    /// Returns as soon as the addresses are known, and connects in the background.
    /// Operations wait for the connection, and their errors say why there is none.
    /// [`wait_until_ready`](Self::wait_until_ready) waits for the connection alone.
    ///
    /// Cancel-safe: dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// If the connection string or the credentials are invalid. Nothing was dialled
    /// then.
    pub async fn connect(
        connection_string: &str,
        credentials: Credentials,
    ) -> Result<Self, ConfigError> {
        Self::connect_with(connection_string, credentials, ClusterOptions::default()).await
    }

    /// Makes a client with these options. Options in the connection string take
    /// precedence.
    ///
    /// Cancel-safe: dropping the future leaves nothing behind.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if an option is invalid.
    pub async fn connect_with(
        connection_string: &str,
        credentials: Credentials,
        options: ClusterOptions,
    ) -> Result<Self, ConfigError> {
        let dns = Arc::new(dns::SystemDns);
        Self::connect_by(connection_string, credentials, options, dns).await
    }

    /// Makes a client that looks up DNS SRV records in this way.
    ///
    /// Cancel-safe: dropping the future leaves nothing behind.
    pub(crate) async fn connect_by(
        connection_string: &str,
        credentials: Credentials,
        mut options: ClusterOptions,
        dns: Arc<dyn dns::SrvLookup>,
    ) -> Result<Self, ConfigError> {
        let string = ConnectionString::parse_with(connection_string, &mut options)?;
        credentials.validate()?;
        let tls = if string.is_tls() {
            let config = tls::client_config(&options.tls, &credentials)?;
            Some(TlsConnector::from(config))
        } else {
            None
        };
        let seeds = dns::Seeds::find(string, &options, dns).await;
        let core = Core::start(options, credentials, seeds, tls);
        let handle = Arc::new(Handle { core });
        Ok(Self { handle })
    }

    /// Returns a bucket, which is opened in the background unless it is open already.
    pub fn bucket(&self, name: &str) -> Bucket {
        Bucket::new(self.handle.clone(), name)
    }

    /// Makes a query, in SQL++.
    ///
    /// ```no_run
    /// # async fn example(cluster: steadfast_couchbase::Cluster) -> steadfast_couchbase::Result<()> {
    /// let mut names = cluster
    ///     .query("SELECT RAW name FROM travel.inventory.airline WHERE country = $country")
    ///     .named("country", "France")?
    ///     .readonly(true)
    ///     .await?;
    /// while let Some(name) = names.next::<String>().await? {
    ///     println!("{name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(&self, statement: impl Into<String>) -> Query {
        query::query(self.handle.clone(), statement)
    }

    /// Makes a statement for the analytics service.
    pub fn analytics(&self, statement: impl Into<String>) -> Analytics {
        analytics::analytics(self.handle.clone(), statement)
    }

    /// Makes a search of an index. The query is the service's JSON, such as
    /// `{"match": "airport", "field": "name"}`.
    ///
    /// # Errors
    /// If the query cannot be written as JSON.
    pub fn search(&self, index: &str, query: &(impl Serialize + ?Sized)) -> Result<Search, Error> {
        search::search(self.handle.clone(), None, index, query)
    }

    /// Returns the management of the cluster.
    pub fn management(&self) -> Management {
        Management::new(self.handle.clone())
    }

    /// Authenticates new connections with these credentials. Existing connections
    /// stay; the server ends them when the old credentials expire.
    ///
    /// # Errors
    /// If the credentials are invalid; the old ones stay in use then.
    pub fn set_credentials(&self, credentials: Credentials) -> Result<(), ConfigError> {
        credentials.validate()?;
        let core = &self.handle.core;
        if let Some(connector) = &core.tls {
            let config = tls::client_config(&core.options.tls, &credentials)?;
            core.services.set_tls(Some(config.clone()));
            connector.store(Arc::new(TlsConnector::from(config)));
        }
        core.set_credentials(credentials);
        Ok(())
    }

    /// Closes the client and all its clones. Operations in progress end with an
    /// error that says so, and connections are closed.
    ///
    /// Cancel-safe: dropping the future still closes the client, without waiting for
    /// its tasks.
    pub async fn close(&self) {
        let core = &self.handle.core;
        core.close();
        core.tasks.wait().await;
    }

    /// Makes a client that does not look for its cluster: the test sets the config.
    #[cfg(test)]
    pub(crate) fn idle(
        options: ClusterOptions,
        credentials: Credentials,
        tls: Option<TlsConnector>,
    ) -> Self {
        let core = Core::new(options, credentials, Vec::new(), tls);
        let handle = Arc::new(Handle { core });
        Self { handle }
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds = self.handle.core.seeds.get();
        let seeds = seeds.iter().map(ToString::to_string);
        f.debug_struct("Cluster")
            .field("seeds", &seeds.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
