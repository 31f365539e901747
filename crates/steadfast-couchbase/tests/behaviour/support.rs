//! What the tests share.

use std::io::ErrorKind as ErrorKindIo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use steadfast::report::Outcome;
use steadfast::strategy::RetryAction;
use steadfast::{BestEffort, from_fn};
use steadfast_cluster::{BucketSettings, ClusterError, NodeId, TestCluster, TestClusterBuilder};
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials, Error, ErrorKind};
use steadfast_wire::config::ClusterConfig;
use steadfast_wire::vbucket;

pub(crate) const BUCKET: &str = "travel";
pub(crate) const VBUCKETS: u16 = 64;

/// More than anything here takes, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn builder(nodes: usize, replicas: usize) -> TestClusterBuilder {
    let bucket = BucketSettings::new(BUCKET)
        .replicas(replicas)
        .vbuckets(VBUCKETS);
    TestCluster::builder()
        .nodes(nodes)
        .bucket(bucket)
        .user("app", "secret")
        .seed(4711)
}

pub(crate) async fn server(nodes: usize) -> TestCluster {
    builder(nodes, 1).start().await.unwrap()
}

pub(crate) fn app() -> Credentials {
    Credentials::password("app", "secret")
}

pub(crate) async fn client(server: &TestCluster) -> Cluster {
    client_with(server, ClusterOptions::new()).await
}

pub(crate) async fn client_with(server: &TestCluster, options: ClusterOptions) -> Cluster {
    Cluster::connect_with(&server.connection_string(), app(), options)
        .await
        .unwrap()
}

/// The default collection, with connections to all nodes up, so that what
/// follows meets no bootstrap.
pub(crate) async fn warm(server: &TestCluster, cluster: &Cluster) -> Collection {
    let collection = cluster.bucket(BUCKET).default_collection();
    for node in server.nodes() {
        let key = key_on(server, node);
        collection.upsert(&key, &0).timeout(LONG).await.unwrap();
    }
    collection
}

/// A key whose document this node has.
pub(crate) fn key_on(server: &TestCluster, node: NodeId) -> String {
    keys_on(server, node).next().unwrap()
}

pub(crate) fn keys_on(server: &TestCluster, node: NodeId) -> impl Iterator<Item = String> + '_ {
    (0..)
        .map(|number| format!("k{number}"))
        .filter(move |key| server.active_node(BUCKET, key.as_bytes()).unwrap() == Some(node))
}

/// The config of the bucket as clients see it now.
pub(crate) fn config(server: &TestCluster) -> ClusterConfig {
    let text = server.bucket_config(BUCKET).unwrap();
    ClusterConfig::parse(text.as_bytes(), "127.0.0.1").unwrap()
}

/// A key that is on its way from one node to another, with their places in the
/// config.
pub(crate) fn moving_key(server: &TestCluster) -> (String, NodeId, NodeId) {
    let bucket = config(server).bucket.unwrap();
    let forward = bucket.forward_vbuckets.unwrap();
    let nodes = server.nodes();
    (0..)
        .find_map(|number| {
            let key = format!("m{number}");
            let vbucket = vbucket::of_key(key.as_bytes(), VBUCKETS);
            let (now, then) = (bucket.vbuckets.node(vbucket, 0)?, forward.node(vbucket, 0)?);
            (now != then).then(|| (key, nodes[now], nodes[then]))
        })
        .unwrap()
}

/// Waits until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "waited too long until {what}");
        tokio::time::sleep(ms(1)).await;
    }
}

/// The names of the reasons on an error, in order of appearance.
pub(crate) fn reasons(error: &Error) -> Vec<&'static str> {
    error.reasons().iter().map(|reason| reason.name()).collect()
}

/// The delays that were decided on, in order.
pub(crate) fn delays(error: &Error) -> Vec<Duration> {
    let report = error.context().report().unwrap();
    let outcomes = report.history().records().map(|record| record.outcome);
    outcomes
        .filter_map(|outcome| match outcome {
            Outcome::Retry { delay, .. } => Some(delay),
            Outcome::Refused(_) | Outcome::Undecided => None,
        })
        .collect()
}

/// Best effort, and a count of how often it was asked.
pub(crate) fn counting() -> (
    impl steadfast::RetryStrategy + Clone + 'static,
    Arc<AtomicU32>,
) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let strategy = from_fn(move |request, _| {
        count.fetch_add(1, Ordering::Relaxed);
        let delay = 1 << request.retries().min(8);
        RetryAction::with_duration(ms(delay))
    });
    (strategy, asked)
}

/// The same delay after every failure.
pub(crate) fn every(delay: Duration) -> impl steadfast::RetryStrategy + Clone + 'static {
    from_fn(move |_, _| RetryAction::with_duration(delay))
}

pub(crate) fn best_effort() -> ClusterOptions {
    ClusterOptions::new().retry_strategy(BestEffort::default())
}

/// All of them, at the same time.
pub(crate) async fn futures<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut pending = false;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(cx) {
                    Poll::Ready(done) => *output = Some(done),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// Runs an operation with little time again and again until its timeout names
/// the reason. Bootstrapping takes as long as it takes, and each of these is a
/// timeout that is sure that nothing happened.
pub(crate) async fn until_timeout_names<T>(
    reason: &str,
    mut run: impl AsyncFnMut(Duration) -> Result<T, Error>,
) -> Error {
    let start = Instant::now();
    loop {
        let Err(error) = run(ms(100)).await else {
            panic!("it succeeded");
        };
        assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
        assert!(!error.is_ambiguous());
        if reasons(&error).contains(&reason) {
            return error;
        }
        assert!(start.elapsed() < LONG, "{error:#}");
    }
}

/// Starts a node that crashed. While it is down, any other test may be given its
/// port for a connection; that is waited out.
pub(crate) async fn restart(server: &TestCluster, node: NodeId) {
    in_use(async || server.restart(node).await).await;
}

/// The same for one that was failed over.
pub(crate) async fn recover(server: &TestCluster, node: NodeId) {
    in_use(async || server.recover(node).await).await;
}

async fn in_use(mut start: impl AsyncFnMut() -> Result<(), ClusterError>) {
    let begun = Instant::now();
    loop {
        match start().await {
            Err(ClusterError::Io(error)) if error.kind() == ErrorKindIo::AddrInUse => {
                assert!(begun.elapsed() < LONG, "{error}");
                tokio::time::sleep(ms(10)).await;
            }
            started => return started.unwrap(),
        }
    }
}
