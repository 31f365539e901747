//! Metrics, with their labels, and the files that use them: the guide, the alert rules and the
//! dashboard.
//!
//! A separate binary with one test, because the recorder is global.
#![cfg(feature = "metrics")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use steadfast::{BestEffort, Standard};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::options::BreakerSettings;
use steadfast_couchbase::{ClusterOptions, fast_fail_or};
use steadfast_wire::{Opcode, Status};

mod fixture;

const GUIDE: &str = include_str!("../../../docs/observability.md");
const ALERTS: &str = include_str!("../../../deploy/prometheus-alerts.yml");
const DASHBOARD: &str = include_str!("../../../deploy/grafana-dashboard.json");

/// The last value of every metric, by name and labels.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<Key, f64>>>, Described);

/// The names that the client described, with their units.
type Described = Arc<Mutex<BTreeMap<String, Option<Unit>>>>;

/// One metric.
struct Cell(Seen, Key);

impl Cell {
    fn change(&self, change: impl FnOnce(&mut f64)) {
        change(self.0.0.lock().unwrap().entry(self.1.clone()).or_default());
    }
}

impl CounterFn for Cell {
    fn increment(&self, value: u64) {
        self.change(|it| *it += value as f64);
    }
    fn absolute(&self, value: u64) {
        self.change(|it| *it = value as f64);
    }
}

impl GaugeFn for Cell {
    fn increment(&self, value: f64) {
        self.change(|it| *it += value);
    }
    fn decrement(&self, value: f64) {
        self.change(|it| *it -= value);
    }
    fn set(&self, value: f64) {
        self.change(|it| *it = value);
    }
}

impl HistogramFn for Cell {
    fn record(&self, _: f64) {
        self.change(|it| *it += 1.0);
    }
}

impl Recorder for Seen {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }
    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }
    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, _: SharedString) {
        self.describe(name, unit);
    }
    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(Cell(self.clone(), key.clone())))
    }
    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::new(Cell(self.clone(), key.clone())))
    }
    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Arc::new(Cell(self.clone(), key.clone())))
    }
}

impl Seen {
    fn describe(&self, name: KeyName, unit: Option<Unit>) {
        let name = name.as_str().to_owned();
        self.1.lock().unwrap().insert(name, unit);
    }

    /// Returns the sum of all metrics of this name that have these labels.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let seen = self.0.lock().unwrap();
        let has = |key: &Key| {
            let label = |wanted: &(&str, &str)| {
                key.labels()
                    .any(|label| (label.key(), label.value()) == *wanted)
            };
            key.name() == name && labels.iter().all(label)
        };
        seen.iter()
            .filter(|(key, _)| has(key))
            .map(|(_, value)| value)
            .sum()
    }

    /// Returns the names of all metrics, each with the labels that it ever had.
    fn names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for key in self.0.lock().unwrap().keys() {
            let labels = key.labels().map(|label| label.key().to_owned());
            names
                .entry(key.name().to_owned())
                .or_default()
                .extend(labels);
        }
        names
    }

    async fn wait_for(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let started = Instant::now();
        while !holds(self) {
            let waited = started.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "{what}: {:#?}",
                self.names()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test]
async fn metrics_have_the_names_and_labels_that_guide_alerts_and_dashboard_use() {
    let seen = Seen::default();
    metrics::set_global_recorder(seen.clone()).unwrap_or_else(|_| panic!("it is the first one"));
    let server = fixture::server(2, 0).await;
    let options = ClusterOptions::new()
        .fleet(true)
        .retry_strategy(fast_fail_or(Standard::guidance()))
        .circuit_breaker(BreakerSettings::default());
    let (cluster, documents) = fixture::warm_client(&server, options).await;

    documents.upsert("k", &1).await.unwrap();
    documents.get("nothing").await.unwrap_err();
    let busy = Fault::on(Opcode::Get)
        .times(1)
        .answer(Status::TemporaryFailure);
    let busy = server.fault(busy);
    documents.get("k").await.unwrap();
    assert_eq!(busy.fired(), 1);
    let cut = server.fault(Fault::on(Opcode::Increment).times(1).cut_after_applying());
    documents.increment("n").initial(1).await.unwrap_err();
    assert_eq!(cut.fired(), 1);

    const DURATION: &str = "db.client.operation.duration";
    let on_bucket = [
        ("db.system.name", "couchbase"),
        ("couchbase.service", "kv"),
        ("db.namespace", fixture::BUCKET),
        ("couchbase.scope.name", "_default"),
        ("couchbase.collection.name", "_default"),
    ];
    assert!(
        seen.sum(
            DURATION,
            &[&on_bucket[..], &[("db.operation.name", "upsert")]].concat()
        ) >= 1.0
    );
    // An answer is not a failure.
    let answered = [
        ("db.operation.name", "get"),
        ("couchbase.answer", "DocumentNotFound"),
    ];
    assert_eq!(seen.sum(DURATION, &answered), 1.0);
    assert_eq!(
        seen.sum(DURATION, &[("error.type", "DocumentNotFound")]),
        0.0
    );
    let failed = [
        ("db.operation.name", "increment"),
        ("error.type", "RequestCanceled"),
    ];
    assert_eq!(seen.sum(DURATION, &failed), 1.0);
    let retried = [
        ("db.operation.name", "get"),
        ("reason", "KV_TEMPORARY_FAILURE"),
        ("stage", "responded"),
    ];
    assert_eq!(seen.sum("couchbase.client.retries", &retried), 1.0);
    let refused = [
        ("db.operation.name", "increment"),
        ("cause", "unsafe"),
        ("stage", "in_flight"),
    ];
    assert_eq!(seen.sum("couchbase.client.refusals", &refused), 1.0);

    // A timeout after retries: the deadline refused the next one.
    let always = Fault::on(Opcode::Touch).answer(Status::TemporaryFailure);
    let always = server.fault(always);
    let refused = [("db.operation.name", "touch"), ("cause", "deadline")];
    // Of a client that has no budget.
    let (_patient, documents_of_patient) =
        fixture::warm_client(&server, ClusterOptions::new()).await;
    // On a slow machine, a timeout may end an attempt instead of a wait.
    let start = Instant::now();
    while seen.sum("couchbase.client.refusals", &refused) == 0.0 {
        let late = documents_of_patient.touch("k", Duration::from_secs(60));
        let late = late.retry(BestEffort::default());
        let late = late.timeout(Duration::from_millis(50)).await;
        let late = late.unwrap_err();
        assert!(late.kind().is_timeout(), "{late:#}");
        assert!(start.elapsed() < Duration::from_secs(60), "never refused");
    }
    drop(always);

    const CONNECTIONS: &str = "couchbase.client.connections";
    let here = [
        ("server.address", "127.0.0.1"),
        ("db.namespace", fixture::BUCKET),
    ];
    seen.wait_for("two nodes are connected", |seen| {
        seen.sum(CONNECTIONS, &here) == 2.0
    })
    .await;
    assert_eq!(
        seen.sum("couchbase.client.circuit_breaker.open", &here),
        0.0
    );
    let capacity = seen.sum("couchbase.client.retry_budget.capacity", &[]);
    assert_eq!(capacity, 500.0);
    let level = seen.sum("couchbase.client.retry_budget.level", &[]);
    assert!(level > 0.0 && level <= capacity, "{level}");

    // A node that never responds in time is spared.
    const SHEDDING: &str = "couchbase.client.brake.shedding";
    assert_eq!(seen.sum(SHEDDING, &here), 0.0);
    let held = server.fault(Fault::on(Opcode::Get).hold());
    let shed = [("db.operation.name", "get"), ("cause", "shed")];
    let start = Instant::now();
    while seen.sum("couchbase.client.refusals", &shed) == 0.0 {
        let reads = (0..20).map(|_| documents.get("k").timeout(Duration::from_millis(20)));
        fixture::futures(reads.map(IntoFuture::into_future).collect()).await;
        assert!(start.elapsed() < Duration::from_secs(60), "it never sheds");
    }
    seen.wait_for("it sheds", |seen| seen.sum(SHEDDING, &here) > 0.0)
        .await;
    drop(held);

    let names = seen.names();
    check_guide(&names);
    let described = seen.1.lock().unwrap().clone();
    assert!(described.keys().eq(names.keys()), "{described:?}");
    assert_eq!(described[DURATION], Some(Unit::Seconds));
    check_queries(&names, "the alerts", ALERTS);
    check_queries(&names, "the dashboard", DASHBOARD);

    // A closed client has no connections.
    cluster.close().await;
    seen.wait_for("the gauges are 0", |seen| {
        seen.sum(CONNECTIONS, &[]) == 0.0 && seen.sum(SHEDDING, &[]) == 0.0
    })
    .await;
}

/// The table of the guide has every metric, with exactly its labels.
fn check_guide(names: &BTreeMap<String, BTreeSet<String>>) {
    let on_all = ["couchbase.cluster.name", "couchbase.cluster.uuid"];
    let mut documented = BTreeSet::new();
    for row in GUIDE.lines().filter(|line| {
        line.starts_with("| `") && line.contains(" gauge")
            || line.contains("| counter |")
            || line.contains("| histogram, ")
    }) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`').to_owned();
        let labels = cells[3].split(", ").filter(|label| *label != "none");
        let labels: BTreeSet<&str> = labels.map(|label| label.trim_matches('`')).collect();
        let emitted = names
            .get(&name)
            .unwrap_or_else(|| panic!("{name} is never emitted"));
        let emitted = emitted.iter().map(String::as_str);
        let emitted: BTreeSet<&str> = emitted.filter(|label| !on_all.contains(label)).collect();
        assert_eq!(labels, emitted, "the labels of {name}");
        documented.insert(name);
    }
    let emitted: BTreeSet<String> = names.keys().cloned().collect();
    assert_eq!(documented, emitted, "the metrics in the guide");
}

/// Each word of a query that looks like a metric or a label is one, in Prometheus's spelling.
fn check_queries(names: &BTreeMap<String, BTreeSet<String>>, what: &str, text: &str) {
    let plain = |name: &String| name.replace('.', "_");
    let metrics: BTreeSet<String> = names.keys().map(plain).collect();
    // Prometheus itself adds these.
    let added = ["instance".to_owned(), "le".to_owned()];
    let labels: BTreeSet<String> = names.values().flatten().map(plain).chain(added).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = 0;
    for word in text.split(|c: char| !is_name(c)) {
        let metric = word
            .strip_suffix("_bucket")
            .or_else(|| word.strip_suffix("_count"))
            .unwrap_or(word);
        if word.starts_with("couchbase_")
            || word.starts_with("db_")
            || word.starts_with("server_")
            || word.ends_with("_type")
        {
            found += 1;
            assert!(
                metrics.contains(metric) || labels.contains(word),
                "{what}: unknown {word}"
            );
        }
    }
    assert!(found > 10, "{what}: {found} names");
    for list in text.split(" by (").skip(1) {
        for label in list.split(')').next().unwrap().split(", ") {
            assert!(labels.contains(label), "{what}: unknown label {label}");
        }
    }
}
