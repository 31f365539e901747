//! Short runs against real clusters.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, Service, TestCluster, TestClusterBuilder};
use steadfast_couchbase::Credentials;
use steadfast_load::client::{Access, Client, ErrorClass, Steadfast};
use steadfast_load::progress::{Progress, Quiet, Snapshot};
use steadfast_load::{Embedded, LoadReport, Settings, Target, run};
use steadfast_wire::{Opcode, Status};
use tokio::sync::mpsc;

fn settings(seconds: u64, concurrency: u16, rate: u32) -> Settings {
    Settings {
        seed: 4711,
        duration: Duration::from_secs(seconds),
        concurrency,
        rate: Some(rate),
        timeout: Duration::from_secs(1),
        ..Settings::default()
    }
}

/// Runs against an embedded cluster.
async fn run_embedded(
    settings: &Settings,
    progress: &mut dyn Progress,
    interrupted: impl Future<Output = ()>,
) -> LoadReport {
    let embedded = Embedded::start(settings.nodes, settings.seed, settings.tls)
        .await
        .unwrap();
    let access = Access::embedded(&embedded);
    let client = Steadfast::connect(access, None, settings.timeout).await;
    let target = Target::Embedded(embedded);
    run(settings, client.unwrap(), &target, progress, interrupted)
        .await
        .unwrap()
}

fn json(report: &LoadReport) -> Value {
    serde_json::from_str(&report.to_json()).unwrap()
}

/// Checks that every intended start, every operation and every write has exactly one outcome. How
/// many there are of each depends on the machine; their sums do not.
fn adds_up(report: &Value, intended: u64) {
    let count = |object: &str, names: &[&str]| -> u64 {
        let counts = names.iter().map(|name| report[object][name].as_u64());
        counts.map(Option::unwrap).sum()
    };
    let operations = count("operations", &["operations"]);
    assert_eq!(count("starts", &["intended"]), intended);
    assert_eq!(operations + count("starts", &["missed"]), intended);
    let ended = ["ok", "failed", "timed_out"];
    assert_eq!(count("operations", &ended), operations);
    let kinds = report["operations"]["by_kind"].as_object().unwrap();
    let by_kind: u64 = kinds.values().map(|kind| kind.as_u64().unwrap()).sum();
    assert_eq!(by_kind, operations);
    let outcomes = count("accounting", &["acknowledged", "failed", "ambiguous"]);
    assert_eq!(outcomes, count("accounting", &["writes"]));
    let acknowledged = count("accounting", &["acknowledged"]);
    assert!(acknowledged > 0, "{report}");
    assert!(count("accounting", &["ambiguous_applied"]) <= count("accounting", &["ambiguous"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_run_injects_every_fault_and_accounts_for_every_write() {
    let report = run_embedded(&settings(5, 16, 1500), &mut Quiet, pending()).await;
    assert!(report.holds(), "{report}");
    let html = report.to_html();
    let report = json(&report);
    assert_eq!(report["seed"], 4711);
    let accounting = &report["accounting"];
    assert_eq!(accounting["holds"], true);
    assert_eq!(accounting["journal"], true);
    for kind in ["lost", "applied_twice", "unexplained"] {
        assert_eq!(accounting[kind], 0, "{kind}");
    }
    adds_up(&report, 5 * 1500);
    assert!(report["latency"]["p99_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(report["faults"]["injected"].as_array().unwrap().len(), 24);
    for (counts, label) in [("retries", "stage"), ("refusals", "cause")] {
        let counts = report[counts].as_array().unwrap();
        assert!(!counts.is_empty(), "no fault had an effect");
        for one in counts {
            assert!(one["count"].as_u64() > Some(0), "{one}");
            assert!(one["reason"].is_string() && one[label].is_string(), "{one}");
        }
    }

    assert!(html.contains("<svg") && html.contains("Every write is accounted for"));
    for external in ["http:", "https:", "src=", "href=", "fetch(", "import"] {
        assert!(!html.contains(external), "the page needs {external}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_an_existing_cluster_injects_no_faults_and_leaves_nothing_behind() {
    let bucket = BucketSettings::new("mine").replicas(1);
    let builder = TestCluster::builder().nodes(2).bucket(bucket);
    let cluster = builder.start().await.unwrap();
    let settings = settings(1, 8, 1000);
    let client = Steadfast::connect(access(&cluster), None, settings.timeout).await;
    let target = Target::Given(cluster.connection_string());
    let report = run(&settings, client.unwrap(), &target, &mut Quiet, pending()).await;
    let report = report.unwrap();
    assert!(report.holds(), "{report}");
    let report = json(&report);
    assert_eq!(report["accounting"]["journal"], false);
    assert_eq!(report["operations"]["failed"], 0);
    assert_eq!(report["operations"]["timed_out"], 0);
    assert!(report["accounting"]["acknowledged"].as_u64().unwrap() > 100);
    let mut existing = BTreeSet::new();
    for entry in cluster.journal().since(0) {
        let key = String::from_utf8(entry.key().to_vec()).unwrap();
        if entry.opcode == Opcode::Delete {
            existing.remove(&key);
        } else {
            existing.insert(key);
        }
    }
    assert!(existing.is_empty(), "{existing:?}");
}

/// Reports the first time that a fault is active.
struct Watch {
    fault: &'static str,
    seen: mpsc::Sender<()>,
}

impl Progress for Watch {
    fn show(&mut self, snapshot: &Snapshot<'_>) {
        if snapshot
            .fault()
            .is_some_and(|fault| fault.starts_with(self.fault))
        {
            let _ = self.seen.try_send(());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_interrupted_during_a_fault_completes_it_and_accounts_for_every_write() {
    let faults = ["crash", "rebalance-in", "rotate", "fail-over"];
    let runs = faults.map(|fault| tokio::spawn(interrupt_during(fault)));
    for run in runs {
        run.await.unwrap();
    }
}

async fn interrupt_during(fault: &'static str) {
    let (seen, mut is_seen) = mpsc::channel(1);
    let interrupted = async {
        is_seen.recv().await;
    };
    let settings = settings(20, 8, 400);
    let report = run_embedded(&settings, &mut Watch { fault, seen }, interrupted).await;
    assert!(report.holds(), "{fault}: {report}");
    assert!(
        report.to_html().contains("interrupted     after"),
        "{fault}"
    );
    let report = json(&report);
    let after = report["interrupted_after_s"].as_f64().unwrap();
    assert!(
        report["load_s"].as_f64() >= Some(after.min(20.0)),
        "{fault}"
    );
    assert!(report["accounting"]["acknowledged"].as_u64() > Some(0));
    let injected = report["faults"]["injected"].as_array().unwrap();
    for one in injected {
        assert!(one["until_s"].is_f64(), "{fault}: {one}");
    }
    // The fault may have ended just before the interruption, and the next one begun.
    let watched = |one: &Value| one["fault"].as_str().unwrap().starts_with(fault);
    let later = injected.iter().rev().position(watched);
    assert!(later <= Some(1), "{fault}: {injected:?}");
}

fn access(cluster: &TestCluster) -> Access {
    Access {
        connection_string: cluster.connection_string(),
        credentials: Credentials::password("app", "secret"),
        tls: None,
        bucket: "mine".to_owned(),
        collection: None,
        ready_within: Duration::from_secs(30),
        statements: true,
    }
}

/// Runs against its own cluster, without injected faults.
async fn run_given(cluster: &TestCluster, settings: &Settings) -> Value {
    let client = Steadfast::connect(access(cluster), None, settings.timeout).await;
    let target = Target::Given(cluster.connection_string());
    let report = run(settings, client.unwrap(), &target, &mut Quiet, pending()).await;
    let report = report.unwrap();
    assert!(report.holds(), "{report}");
    json(&report)
}

fn one_bucket(nodes: usize) -> TestClusterBuilder {
    let bucket = BucketSettings::new("mine").replicas(nodes - 1).vbuckets(64);
    TestCluster::builder().nodes(nodes).bucket(bucket)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_the_rate_of_the_load_and_reading_back_is_reported_apart() {
    let cluster = one_bucket(1).start().await.unwrap();
    let report = run_given(&cluster, &settings(3, 128, 100)).await;
    assert_eq!(report["starts"]["rate_per_s"], 100);
    assert_eq!(report["starts"]["intended"], 300);
    assert_eq!(report["starts"]["missed"], 0);
    assert_eq!(report["operations"]["operations"], 300);
    assert_eq!(report["load_s"], 3.0);
    assert_eq!(report["throughput_per_s"], 100.0);
    let read_back = &report["read_back"];
    assert!(read_back["operations"].as_u64() > Some(20), "{read_back}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_server_lowers_no_intention_and_shows_in_the_latency() {
    const HELD: u64 = 50;
    let cluster = one_bucket(1).max_concurrent_commands(HELD as usize);
    let cluster = cluster.start().await.unwrap();
    let settings = Settings {
        timeout: Duration::from_secs(30),
        ..settings(2, 150, 100)
    };
    let stall = async {
        until(|| cluster.journal().since(0).len() >= 10).await;
        let hold = cluster.fault(Fault::on_service(Service::KeyValue).hold());
        // Operations begin although none ends.
        until(|| hold.fired() >= HELD).await;
    };
    let (report, ()) = tokio::join!(run_given(&cluster, &settings), stall);
    adds_up(&report, 200);
    assert_eq!(report["starts"]["missed"], 0);
    // The first operation that was held waited for the intended start of the last one.
    let p99 = report["latency"]["p99_ms"].as_f64().unwrap();
    assert!(p99 > 400.0, "{p99}");
}

/// Waits for a condition of the cluster.
async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_withdrawn_in_the_middle_are_no_violation() {
    let cluster = one_bucket(1).start().await.unwrap();
    let withdraw = async {
        until(|| cluster.journal().since(0).len() >= 10).await;
        let denied = Fault::on(Opcode::Set).answer(Status::AccessError);
        let denied = cluster.fault(denied);
        until(|| denied.fired() >= 20).await;
    };
    let settings = settings(2, 8, 100);
    let (report, ()) = tokio::join!(run_given(&cluster, &settings), withdraw);
    let denied = &report["operations"]["errors"]["AuthenticationFailure"];
    assert!(denied.as_u64() >= Some(20), "{denied}");
    let accounting = &report["accounting"];
    assert_eq!(accounting["unexplained"], 0, "{accounting}");
    assert_eq!(accounting["holds"], true, "{accounting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_cannot_begin_for_the_limit_are_reported() {
    let cluster = one_bucket(1).start().await.unwrap();
    let slow = Fault::on_service(Service::KeyValue).delay(Duration::from_millis(100));
    let _slow = cluster.fault(slow);
    // Two workers of 100 ms each begin 20 operations per second.
    let report = run_given(&cluster, &settings(2, 2, 100)).await;
    let starts = &report["starts"];
    assert_eq!(starts["intended"], 200, "{starts}");
    assert!(starts["missed"].as_u64() > Some(100), "{starts}");
    assert!(starts["late"].as_u64() > Some(10), "{starts}");
    assert!(report["operations"]["operations"].as_u64() < Some(60));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_a_query_service_gets_no_statements() {
    let cluster = one_bucket(2).without(Service::Query);
    let cluster = cluster.start().await.unwrap();
    let report = run_given(&cluster, &settings(1, 8, 1000)).await;
    let kinds = &report["operations"]["by_kind"];
    assert!(kinds["insert"].as_u64() > Some(10), "{kinds}");
    assert!(kinds["select"].is_null(), "{kinds}");
    assert!(kinds["insert statement"].is_null(), "{kinds}");
    assert_eq!(report["operations"]["failed"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_operations_are_in_flight_than_a_connection_takes_at_first() {
    const OPERATIONS: usize = 4200;
    let cluster = one_bucket(1).max_concurrent_commands(OPERATIONS);
    let cluster = cluster.start().await.unwrap();
    let client = Steadfast::connect(access(&cluster), None, Duration::from_secs(60));
    let client = client.await.unwrap();
    let hold = cluster.fault(Fault::on(Opcode::Get).hold());
    let reads = std::iter::repeat_with(|| client.get("nothing")).take(OPERATIONS);
    let release = async {
        until(|| hold.fired() >= OPERATIONS as u64).await;
        drop(hold);
    };
    let (reads, ()) = tokio::join!(join_all(reads), release);
    for read in reads {
        let error = read.unwrap_err();
        assert_eq!(error.class, ErrorClass::NotFound, "{}", error.history);
    }
}
