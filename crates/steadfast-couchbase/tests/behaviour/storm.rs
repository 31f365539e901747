//! A cluster that changes under load. The cluster's journal is the judge: what
//! was acknowledged was applied once, what surely failed was not, and what may
//! have been applied was so at most once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_cluster::TestCluster;
use steadfast_cluster::topology::Pace;
use steadfast_couchbase::collection::Raw;
use steadfast_couchbase::{ClusterOptions, Collection, Error, ErrorKind};
use tokio::task::JoinHandle;

use crate::fixture::*;

/// What became of a write, by its key.
type Outcomes = Vec<(String, Result<(), Error>)>;

/// Writers and readers that go on until they are told to stop.
struct Load {
    stop: Arc<AtomicBool>,
    writers: Vec<JoinHandle<Outcomes>>,
    readers: Vec<JoinHandle<Vec<Error>>>,
    counters: Vec<JoinHandle<Counted>>,
    documents: Collection,
}

impl Load {
    fn start(documents: &Collection, name: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let writers = (0..8).map(|writer| {
            let (documents, stop) = (documents.clone(), stop.clone());
            let name = format!("{name}-{writer}");
            tokio::spawn(write(documents, stop, name))
        });
        let readers = (0..8).map(|_| {
            let (documents, stop) = (documents.clone(), stop.clone());
            tokio::spawn(read(documents, stop))
        });
        let counters = (0..4).map(|counter| {
            let (documents, stop) = (documents.clone(), stop.clone());
            let name = format!("{name}-count-{counter}");
            tokio::spawn(count(documents, stop, name))
        });
        Self {
            writers: writers.collect(),
            readers: readers.collect(),
            counters: counters.collect(),
            documents: documents.clone(),
            stop,
        }
    }

    /// Stops it. No reader may have failed, and nothing may have been counted
    /// twice.
    async fn stop(self) -> Outcomes {
        self.stop.store(true, Ordering::Relaxed);
        for counter in self.counters {
            counter.await.unwrap().judge(&self.documents).await;
        }
        for reader in self.readers {
            let errors = reader.await.unwrap();
            assert!(errors.is_empty(), "a get failed: {:#}", errors[0]);
        }
        let mut outcomes = Vec::new();
        for writer in self.writers {
            outcomes.extend(writer.await.unwrap());
        }
        assert!(outcomes.len() > 50, "there was no load");
        outcomes
    }
}

/// Inserts and upserts, each of a key of its own.
async fn write(documents: Collection, stop: Arc<AtomicBool>, name: String) -> Outcomes {
    let mut outcomes = Vec::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let key = format!("{name}-{number}");
        let written = if number % 2 == 0 {
            documents.insert(&key, &number).timeout(LONG).await
        } else {
            documents.upsert(&key, &number).timeout(LONG).await
        };
        outcomes.push((key, written.map(drop)));
        tokio::task::yield_now().await;
    }
    outcomes
}

async fn read(documents: Collection, stop: Arc<AtomicBool>) -> Vec<Error> {
    let mut errors = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let key = format!("k{}", fastrand::u16(..500));
        match documents.get(&key).timeout(LONG).await {
            Err(error) if error.kind() != ErrorKind::DocumentNotFound => errors.push(error),
            Ok(_) | Err(_) => {}
        }
    }
    errors
}

/// Compares what the client said with what was applied. Returns how many were
/// not acknowledged.
fn judge(server: &TestCluster, outcomes: &Outcomes) -> usize {
    assert_eq!(server.journal().forgotten(), 0);
    let mut applied: HashMap<Vec<u8>, usize> = HashMap::new();
    for entry in server.journal().since(0) {
        *applied.entry(entry.key().to_vec()).or_default() += 1;
    }
    let mut failed = 0;
    for (key, outcome) in outcomes {
        let times = applied.get(key.as_bytes()).copied().unwrap_or(0);
        match outcome {
            Ok(()) => assert_eq!(times, 1, "{key} was acknowledged"),
            Err(error) if error.is_ambiguous() => {
                // The one thing that may happen to a write that has all the time
                // it needs (RFC 0049, "Network Time").
                assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
                assert!(reasons(error).contains(&"SOCKET_CLOSED_WHILE_IN_FLIGHT"));
                assert!(times <= 1, "{key} was applied {times} times: {error:#}");
                failed += 1;
            }
            Err(error) => panic!("{key} failed: {error:#}"),
        }
    }
    failed
}

/// Counts up and appends to documents of its own, which each attempt too many
/// would show.
async fn count(documents: Collection, stop: Arc<AtomicBool>, name: String) -> Counted {
    let mut counted = Counted::default();
    let log = format!("{name}-log");
    let raw = Raw::binary(Vec::new());
    documents.upsert_raw(&log, raw).timeout(LONG).await.unwrap();
    while !stop.load(Ordering::Relaxed) {
        let increment = documents.increment(&name).initial(1).timeout(LONG);
        counted.counts.note(increment.await.map(drop));
        let entry = format!("{};", counted.entries.all);
        let append = documents.append(&log, entry).timeout(LONG);
        counted.entries.note(append.await.map(drop));
    }
    counted.name = name;
    counted
}

#[derive(Default)]
struct Counted {
    name: String,
    counts: Tally,
    entries: Tally,
}

#[derive(Default)]
struct Tally {
    all: usize,
    unsure: usize,
}

impl Tally {
    fn note(&mut self, outcome: Result<(), Error>) {
        self.all += 1;
        if let Err(error) = outcome {
            assert!(error.is_ambiguous(), "{error:#}");
            assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
            self.unsure += 1;
        }
    }

    /// Whether so many may have been applied.
    fn allows(&self, applied: usize) -> bool {
        (self.all - self.unsure..=self.all).contains(&applied)
    }
}

impl Counted {
    async fn judge(&self, documents: &Collection) {
        let Self {
            name,
            counts,
            entries,
        } = self;
        let counter = documents.get(name).timeout(LONG).await.unwrap();
        let value: usize = counter.content().unwrap();
        assert!(
            counts.allows(value),
            "{value} of {} less {}",
            counts.all,
            counts.unsure
        );
        let log = format!("{name}-log");
        let log = documents.get(&log).timeout(LONG).await.unwrap();
        let text = String::from_utf8(log.bytes().to_vec()).unwrap();
        let found: Vec<usize> = text
            .split_terminator(';')
            .map(|it| it.parse().unwrap())
            .collect();
        assert!(
            found.is_sorted_by(|one, next| one < next),
            "twice, or out of order: {text}"
        );
        assert!(
            entries.allows(found.len()),
            "{} of {}",
            found.len(),
            entries.all
        );
    }
}

/// Every acknowledged write can be read.
async fn read_back(documents: &Collection, outcomes: &Outcomes) {
    for (key, _) in outcomes.iter().filter(|(_, outcome)| outcome.is_ok()) {
        documents.get(key).timeout(LONG).await.unwrap();
    }
}

fn pace() -> Pace {
    Pace {
        vbuckets_per_step: 4,
        pause: ms(5),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_fails_while_nodes_come_and_go_in_good_order() {
    let server = builder(3, 1).farewell(ms(1000)).start().await.unwrap();
    let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let load = Load::start(&documents, "calm");
    let (_, rebalance) = server.begin_rebalance_in().await.unwrap();
    rebalance.run(pace()).await;
    let rebalance = server.begin_rebalance_out(server.nodes()[0]).await.unwrap();
    rebalance.run(pace()).await;
    let lost = server.nodes()[1];
    server.fail_over(lost).await.unwrap();
    recover(&server, lost).await;
    server.begin_rebalance().await.unwrap().run(pace()).await;
    let outcomes = load.stop().await;
    assert_eq!(judge(&server, &outcomes), 0, "nothing was cut");
    read_back(&documents, &outcomes).await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_fails_only_operations_in_flight() {
    let server = builder(3, 1).farewell(ms(50)).start().await.unwrap();
    let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let load = Load::start(&documents, "crash");
    for round in 0..3 {
        let node = server.nodes()[round];
        tokio::time::sleep(ms(50)).await;
        server.crash(node).await.unwrap();
        tokio::time::sleep(ms(50)).await;
        restart(&server, node).await;
    }
    // One that does not come back by itself.
    let lost = server.nodes()[2];
    tokio::time::sleep(ms(50)).await;
    server.crash(lost).await.unwrap();
    tokio::time::sleep(ms(50)).await;
    server.fail_over(lost).await.unwrap();
    recover(&server, lost).await;
    server.begin_rebalance().await.unwrap().run(pace()).await;
    let outcomes = load.stop().await;
    let failed = judge(&server, &outcomes);
    // Each of the writers had at most one in flight at each crash.
    assert!(failed <= 4 * 8, "{failed} writes failed");
    read_back(&documents, &outcomes).await;
    cluster.close().await;
}
