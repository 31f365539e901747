//! Short runs against real clusters.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Duration;

use serde_json::Value;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::Credentials;
use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::{Progress, Quiet, Snapshot};
use steadfast_load::{Embedded, LoadReport, Settings, Target, run};
use steadfast_wire::Opcode;
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
    let embedded = Embedded::start(settings.nodes, settings.seed)
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
    assert!(accounting["acknowledged"].as_u64().unwrap() > 500);
    assert!(report["operations"]["ok"].as_u64().unwrap() > 1000);
    assert!(report["latency"]["p99_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(report["faults"]["injected"].as_array().unwrap().len(), 13);
    for (counts, label) in [("retries", "stage"), ("refusals", "cause")] {
        let counts = report[counts].as_array().unwrap();
        assert!(!counts.is_empty(), "no fault had an effect");
        for one in counts {
            assert!(one["count"].as_u64() > Some(0), "{one}");
            assert!(one["reason"].is_string() && one[label].is_string(), "{one}");
        }
    }

    assert!(html.contains("<svg") && html.contains("Every write is accounted for"));
    for external in ["http:", "https:", "src=", "href=", "<script", "@import"] {
        assert!(!html.contains(external), "the page needs {external}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_against_an_existing_cluster_injects_no_faults_and_leaves_nothing_behind() {
    let bucket = BucketSettings::new("mine").replicas(1);
    let builder = TestCluster::builder().nodes(2).bucket(bucket);
    let cluster = builder.start().await.unwrap();
    let settings = settings(1, 8, 1000);
    let access = Access {
        connection_string: cluster.connection_string(),
        credentials: Credentials::password("app", "secret"),
        tls: None,
        bucket: "mine".to_owned(),
        collection: None,
        ready_within: Duration::from_secs(30),
    };
    let client = Steadfast::connect(access, None, settings.timeout).await;
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
    assert!(report.to_html().contains("Interrupted after"), "{fault}");
    let report = json(&report);
    let after = report["interrupted_after_s"].as_f64().unwrap();
    assert!(after < 20.0, "{fault}: {after}");
    assert!(report["accounting"]["acknowledged"].as_u64().unwrap() > 10);
    for injected in report["faults"]["injected"].as_array().unwrap() {
        assert!(injected["until_s"].is_f64(), "{fault}: {injected}");
    }
}
