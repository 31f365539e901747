//! Operations on a test cluster, until the program is stopped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast::Standard;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::options::BreakerSettings;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Credentials};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;

use crate::Done;

/// The pause between two rounds of operations.
const PAUSE: Duration = Duration::from_millis(10);
/// An operation ends after this time, so that an outage shows soon.
const TIMEOUT: Duration = Duration::from_millis(250);
/// The most operations at the same time.
const AT_ONCE: usize = 500;

pub(crate) async fn run() -> Done {
    let server = TestCluster::builder()
        .nodes(3)
        .bucket(BucketSettings::new("travel").replicas(1))
        .user("app", "secret")
        .control(0)
        .start()
        .await?;
    if let Some(address) = server.control_address() {
        println!("control   {}@{address}", server.control_token());
    }
    let options = ClusterOptions::new()
        .fleet(true)
        // A shorter window than usual, so that an outage shows soon.
        .circuit_breaker(BreakerSettings {
            rolling_window: Duration::from_secs(5),
            ..BreakerSettings::default()
        });
    let login = || Credentials::password("app", "secret");
    let address = server.connection_string();
    let cluster = Cluster::connect_with(&address, login(), options).await?;
    let documents = cluster.bucket("travel").default_collection();
    // Another client, whose retries are paid from a budget.
    let options = ClusterOptions::new().retry_strategy(Standard::guidance());
    let budgeted = Cluster::connect_with(&address, login(), options).await?;
    let counters = budgeted.bucket("travel").default_collection();
    for number in 0..100 {
        documents.upsert(&format!("u:{number}"), &number).await?;
    }
    println!("running   until Ctrl-C");
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut ticks = tokio::time::interval(PAUSE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for round in 0_u64.. {
        tokio::select! {
            _ = ticks.tick() => {}
            stopped = tokio::signal::ctrl_c() => {
                stopped?;
                break;
            }
        }
        if let Ok(place) = places.clone().try_acquire_owned() {
            let (documents, counters) = (documents.clone(), counters.clone());
            tokio::spawn(async move {
                operate(&documents, &counters, round).await;
                drop(place);
            });
        }
    }
    cluster.close().await;
    budgeted.close().await;
    Ok(())
}

/// Two reads of documents that exist, one of a document that does not, and a write. What fails
/// is in the metrics.
async fn operate(documents: &Collection, counters: &Collection, round: u64) {
    for number in [round % 100, (round + 50) % 100] {
        let started = Instant::now();
        let read = documents.get(&format!("u:{number}")).timeout(TIMEOUT).await;
        if read.is_ok() {
            // The application's own view, to compare with the client's.
            metrics::histogram!("example.read.duration").record(started.elapsed());
        }
    }
    let _ = documents.get("nobody").timeout(TIMEOUT).await;
    let _ = counters
        .increment("visits")
        .initial(1)
        .timeout(TIMEOUT)
        .await;
}
