//! The client: a cluster, its buckets.

use std::fmt;
use std::sync::Arc;

use tokio_rustls::TlsConnector;

use crate::bucket::Bucket;
use crate::client::Core;
use crate::config_error::ConfigError;
use crate::connection_string::ConnectionString;
use crate::credentials::Credentials;
use crate::dns;
use crate::options::ClusterOptions;
use crate::tls;
use crate::topology::Address;

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

/// Closes the client when the last handle goes.
pub(crate) struct Handle {
    pub(crate) core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.close();
    }
}

impl Cluster {
    /// A client with the default options.
    ///
    /// Returns as soon as it is known where to look; it connects in the
    /// background. Operations wait for that, and say what was wrong if it cannot
    /// be done; [`wait_until_ready`](Self::wait_until_ready) waits for it alone.
    ///
    /// # Errors
    /// If the connection string or the credentials make no sense. Nothing was
    /// dialled then.
    pub async fn connect(
        connection_string: &str,
        credentials: Credentials,
    ) -> Result<Self, ConfigError> {
        Self::connect_with(connection_string, credentials, ClusterOptions::default()).await
    }

    /// A client with these options. What the connection string says counts more.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if an option makes no sense.
    pub async fn connect_with(
        connection_string: &str,
        credentials: Credentials,
        mut options: ClusterOptions,
    ) -> Result<Self, ConfigError> {
        let string = ConnectionString::parse(connection_string)?;
        string.apply_to(&mut options);
        options.validate()?;
        credentials.validate()?;
        let tls = if string.is_tls() {
            let config = tls::client_config(&options.tls, &credentials)?;
            Some(TlsConnector::from(config))
        } else {
            None
        };
        let seeds = dns::seeds(&string, &options, &dns::SystemDns).await;
        let seeds = seeds
            .iter()
            .map(|seed| Address::new(&seed.host, seed.port))
            .collect();
        let core = Core::start(options, credentials, seeds, tls);
        let handle = Arc::new(Handle { core });
        Ok(Self { handle })
    }

    /// A bucket. It is opened in the background, unless it is already.
    pub fn bucket(&self, name: &str) -> Bucket {
        Bucket::new(self.handle.clone(), name)
    }

    /// New connections authenticate with these from now on. Those that are up
    /// stay; the server ends them when the old credentials expire.
    ///
    /// # Errors
    /// If the credentials make no sense; the old ones stay then.
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

    /// Closes the client. Operations under way end with an error that says so,
    /// and connections are closed. All clones are closed with it.
    ///
    /// Dropping the future closes the client all the same, but waits for nothing.
    pub async fn close(&self) {
        let core = &self.handle.core;
        core.close();
        core.tasks.wait().await;
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
        let seeds = self.handle.core.seeds.iter().map(ToString::to_string);
        f.debug_struct("Cluster")
            .field("seeds", &seeds.collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
