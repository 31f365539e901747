//! A cluster, and a client of it that the test controls.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast::Reason;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_wire::config::{ClusterConfig, Service, Transport};
use tokio_rustls::TlsConnector;

use crate::kv::handshake::Rejected;
use crate::options::ClusterOptions;
use crate::topology::Address;
use crate::{Cluster, Credentials};

pub(super) const BUCKET: &str = "b";

/// A client whose config the test sets.
pub(super) struct TestClient {
    cluster: Cluster,
    revision: AtomicI64,
}

impl Deref for TestClient {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl TestClient {
    /// A client without a config.
    pub(super) fn unconnected() -> Self {
        Self::with(ClusterOptions::new(), None)
    }

    /// A client with these options, and with TLS if there is a connector.
    pub(super) fn with(options: ClusterOptions, tls: Option<TlsConnector>) -> Self {
        let credentials = Credentials::password("app", "secret");
        Self {
            cluster: Cluster::idle(options, credentials, tls),
            revision: AtomicI64::new(1),
        }
    }

    /// A client of this cluster.
    pub(super) fn of(cluster: &TestCluster) -> Self {
        let client = Self::unconnected();
        client.set_config(config(cluster));
        client
    }

    /// A client that finds every service at these addresses.
    pub(super) fn at(addresses: &[std::net::SocketAddr]) -> Self {
        Self::with_at(ClusterOptions::new(), addresses)
    }

    /// The same, with these options.
    pub(super) fn with_at(options: ClusterOptions, addresses: &[std::net::SocketAddr]) -> Self {
        let node = |address: &std::net::SocketAddr| {
            let names = Service::ALL.map(|service| service.json_name(Transport::Plain));
            let ports = names.map(|name| (name.to_owned(), address.port().into()));
            let services = serde_json::Map::from_iter(ports);
            json!({"hostname": address.ip().to_string(), "services": services})
        };
        let client = Self::with(options, None);
        client.set_config(of_nodes(addresses.iter().map(node).collect()));
        client
    }

    pub(super) fn set_config(&self, mut config: ClusterConfig) {
        config.version.rev = self.revision.fetch_add(1, Ordering::Relaxed);
        self.core().apply_config(Arc::new(config));
    }

    /// Lets the client know a terminal reason.
    pub(super) fn set_terminal(&self, reason: &'static Reason) {
        let rejected = Rejected::new(reason, "test".to_owned());
        let key = (None, Address::new("node", 1));
        self.core().terminals.record(&key, &rejected);
        self.core().changed();
    }

    /// The number of plans that it remembers.
    pub(super) fn plans(&self) -> usize {
        self.core().services.plans.count()
    }
}

/// A cluster of one node with a client.
pub(super) async fn pair() -> (TestCluster, TestClient) {
    let cluster = cluster(1).await;
    let client = TestClient::of(&cluster);
    (cluster, client)
}

/// A cluster with a bucket and the user `app`.
pub(super) async fn cluster(nodes: usize) -> TestCluster {
    builder(nodes).start().await.unwrap()
}

pub(super) fn builder(nodes: usize) -> steadfast_cluster::TestClusterBuilder {
    let bucket = BucketSettings::new(BUCKET).replicas(0);
    TestCluster::builder()
        .nodes(nodes)
        .bucket(bucket)
        .user("app", "secret")
}

/// The config of a cluster, as its nodes would hand it out.
pub(super) fn config(cluster: &TestCluster) -> ClusterConfig {
    let mut nodes = vec![json!({"services": {}}); cluster.nodes().len()];
    let over_http = |service: &Service| *service != Service::KeyValue;
    for service in Service::ALL.into_iter().filter(over_http) {
        for (node, address) in nodes.iter_mut().zip(cluster.addresses(service)) {
            let (host, port) = address.rsplit_once(':').unwrap();
            node["hostname"] = host.into();
            let port: u16 = port.parse().unwrap();
            node["services"][service.json_name(Transport::Plain)] = port.into();
        }
    }
    of_nodes(nodes)
}

fn of_nodes(nodes: Vec<Value>) -> ClusterConfig {
    let capabilities = json!({"n1ql": ["enhancedPreparedStatements"]});
    let config = json!({
        "revEpoch": 1, "rev": 1, "nodesExt": nodes, "clusterCapabilities": capabilities,
    });
    ClusterConfig::parse(config.to_string().as_bytes(), "unused").unwrap()
}

/// Waits until a condition holds, for ten seconds at most.
pub(super) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "timed out waiting until {what}");
}

/// Runs something with longer and longer timeouts until it comes far enough before
/// its timeout. How long that takes depends on the machine.
pub(super) async fn patiently<T>(run: impl AsyncFn(Duration) -> Option<T>) -> T {
    let mut time = Duration::from_millis(300);
    while time < Duration::from_secs(60) {
        if let Some(done) = run(time).await {
            return done;
        }
        time *= 2;
    }
    panic!("not even a minute is enough");
}

/// The timeout of an operation that names this reason.
pub(super) async fn timeout_that_names<T>(
    reason: &str,
    run: impl AsyncFn(Duration) -> Result<T, crate::Error>,
) -> crate::Error {
    patiently(async |time| {
        let error = run(time).await.err().expect("a timeout");
        assert_eq!(
            error.kind(),
            crate::ErrorKind::UnambiguousTimeout,
            "{error:#}"
        );
        reasons(&error).contains(&reason).then_some(error)
    })
    .await
}

/// The names of the reasons on an error.
pub(super) fn reasons(error: &crate::Error) -> Vec<&'static str> {
    error.reasons().iter().map(|reason| reason.name()).collect()
}
