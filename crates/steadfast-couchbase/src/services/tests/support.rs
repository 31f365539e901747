//! A cluster to ask, and the host that asks it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::header::HeaderValue;
use parking_lot::Mutex;
use steadfast::{BestEffort, Reason, RetryStrategy};
use steadfast_cluster::{BucketSettings, Service as Served, TestCluster};
use steadfast_wire::config::{
    ClusterConfig, ConfigNode, ConfigVersion, Service, ServicePorts, Transport,
};
use tokio::sync::watch;

use crate::observe::Reports;
use crate::options::ClusterOptions;
use crate::services::Services;
use crate::services::host::Host;

pub(super) const BUCKET: &str = "b";

/// `app:secret`.
const AUTHORIZATION: &str = "Basic YXBwOnNlY3JldA==";

/// A host that a test can change under an operation.
pub(super) struct TestHost {
    services: Services,
    reports: Reports,
    config: Mutex<Option<Arc<ClusterConfig>>>,
    pub(super) terminal: Mutex<Option<(&'static Reason, String)>>,
    pub(super) authorization: Mutex<Option<HeaderValue>>,
    pub(super) strategy: Mutex<Arc<dyn RetryStrategy>>,
    pub(super) tls: AtomicBool,
    closed: AtomicBool,
    changes: watch::Sender<u64>,
}

impl TestHost {
    /// A host that knows no config.
    pub(super) fn unconnected() -> Arc<Self> {
        Self::with(ClusterOptions::new())
    }

    /// The same with these options.
    pub(super) fn with(options: ClusterOptions) -> Arc<Self> {
        Arc::new(Self {
            services: Services::new(&options, None),
            reports: Reports::new(options.reports.clone()),
            config: Mutex::new(None),
            terminal: Mutex::new(None),
            authorization: Mutex::new(Some(HeaderValue::from_static(AUTHORIZATION))),
            strategy: Mutex::new(Arc::new(crate::fast_fail_on_terminal_errors())),
            tls: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            changes: watch::Sender::new(0),
        })
    }

    /// A host of this cluster.
    pub(super) fn of(cluster: &TestCluster) -> Arc<Self> {
        let host = Self::unconnected();
        host.set_config(config(cluster));
        host
    }

    /// A host whose every service is at these addresses.
    pub(super) fn at(addresses: &[std::net::SocketAddr]) -> Arc<Self> {
        let node = |address: &std::net::SocketAddr| {
            let ports = Service::ALL
                .iter()
                .fold(ServicePorts::default(), |ports, service| {
                    ports.with(*service, Transport::Plain, address.port())
                });
            ConfigNode {
                hostname: address.ip().to_string(),
                ports,
                ..ConfigNode::default()
            }
        };
        let host = Self::unconnected();
        host.set_config(of_nodes(addresses.iter().map(node).collect()));
        host
    }

    pub(super) fn set_config(&self, config: ClusterConfig) {
        *self.config.lock() = Some(Arc::new(config));
        self.changed();
    }

    pub(super) fn best_effort(self: Arc<Self>) -> Arc<Self> {
        *self.strategy.lock() = Arc::new(BestEffort::default());
        self
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.changed();
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    /// The config that it has.
    pub(super) fn config_now(&self) -> Arc<ClusterConfig> {
        self.config.lock().clone().unwrap()
    }

    /// How many plans it remembers.
    pub(super) fn plans(&self) -> usize {
        self.services.plans().count()
    }
}

impl Host for TestHost {
    fn services(&self) -> &Services {
        &self.services
    }

    fn config(&self) -> Option<Arc<ClusterConfig>> {
        self.config.lock().clone()
    }

    fn network(&self) -> Option<Arc<str>> {
        None
    }

    fn is_tls(&self) -> bool {
        self.tls.load(Ordering::Acquire)
    }

    fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().clone()
    }

    fn timeout(&self, _: Service) -> Duration {
        Duration::from_secs(10)
    }

    fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.strategy.lock().clone()
    }

    fn terminal(&self) -> Option<(&'static Reason, String)> {
        self.terminal.lock().clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn agent(&self) -> &str {
        "test"
    }

    fn reports(&self) -> &Reports {
        &self.reports
    }
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
    let services = [
        (Served::Mgmt, Service::Management),
        (Served::Query, Service::Query),
        (Served::Analytics, Service::Analytics),
        (Served::Search, Service::Search),
        (Served::Views, Service::Views),
    ];
    let mut nodes = vec![ConfigNode::default(); cluster.addresses(Served::Kv).len()];
    for (served, service) in services {
        for (node, address) in nodes.iter_mut().zip(cluster.addresses(served)) {
            let (host, port) = address.rsplit_once(':').unwrap();
            node.hostname = host.to_owned();
            let ports = std::mem::take(&mut node.ports);
            node.ports = ports.with(service, Transport::Plain, port.parse().unwrap());
        }
    }
    of_nodes(nodes)
}

fn of_nodes(nodes: Vec<ConfigNode>) -> ClusterConfig {
    let mut config = ClusterConfig::new(ConfigVersion { epoch: 1, rev: 1 }, nodes);
    let query = vec!["enhancedPreparedStatements".to_owned()];
    config.capabilities.insert("n1ql".to_owned(), query);
    config
}

/// Waits until a condition holds, for not more than a while.
pub(super) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    assert!(waited.is_ok(), "it never came about that {what}");
}

/// Does something that has to run out of time, but not before it came so far, in
/// ever more time until it did. How long that takes is the machine's to say.
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
