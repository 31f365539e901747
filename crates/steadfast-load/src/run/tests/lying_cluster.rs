//! The accounting finds what a lying cluster does.
//!
//! For each kind of write there is a cluster in memory that does one thing wrong with every
//! seventh of them. Workers, journal audit and final comparison must find exactly that:
//! with a journal and, where documents show it, without.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use steadfast_cluster::journal::Spread;
use steadfast_wire::Opcode;
use steadfast_wire::frame_info::DurabilityLevel;
use tokio::time::Instant;

use super::super::verify;
use crate::accounting::{JournalAudit, Mutation, Totals, Violation, WriteLog};
use crate::client::{Client, ClientError, Content, Counted, ErrorClass, Value};
use crate::measure::WorkerStats;
use crate::report::{Accounting, Leftovers};
use crate::workload::{OpKind, Pace, RunState, Worker};
use crate::write_id::WriteId;

const LATE: Duration = Duration::from_secs(15);
const READ_BACK: Duration = Duration::from_secs(20);
/// How long the client waits for a cluster that does not answer.
const TIMEOUT: Duration = Duration::from_millis(2500);
const OPERATIONS: u64 = 3000;
const WORKERS: u16 = 2;
const EVERY: u64 = 7;
const HISTORY: &str = "#1 a lie";

/// The wrong thing that the cluster does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    /// Acknowledges, and applies nothing.
    OnlyAcknowledged,
    /// Applies twice, and acknowledges.
    Twice,
    /// Applies twice, and reports an ambiguous failure.
    TwiceAmbiguous,
    /// Applies, and reports a failure.
    ReportedFailed,
    /// Applies and acknowledges, and undoes the change of the document.
    Undone,
    /// Applies and acknowledges, and leaves the journal as it is.
    NotJournaled,
    /// Applies to the document of another worker, and acknowledges.
    Elsewhere,
}

/// The violation that must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Lost,
    Twice,
    Unexplained,
}

/// Returns the violation that a lie causes, with a journal and without.
fn expected(lie: Lie, kind: OpKind) -> (Found, Found) {
    let grows = matches!(kind, OpKind::Append | OpKind::ArrayAppend);
    let made = matches!(kind, OpKind::Insert | OpKind::InsertStatement);
    match lie {
        Lie::None => (Found::Nothing, Found::Nothing),
        Lie::OnlyAcknowledged | Lie::Undone => (Found::Lost, Found::Lost),
        // Repeating the same write or removal changes no document.
        Lie::Twice | Lie::TwiceAmbiguous if grows || kind == OpKind::Increment => {
            (Found::Twice, Found::Twice)
        }
        Lie::Twice | Lie::TwiceAmbiguous => (Found::Twice, Found::Nothing),
        Lie::ReportedFailed if grows || made || kind == OpKind::Remove => {
            (Found::Unexplained, Found::Unexplained)
        }
        // The counter is higher than possible.
        Lie::ReportedFailed if kind == OpKind::Increment => (Found::Unexplained, Found::Twice),
        // A read finds neither the last acknowledged write nor an ambiguous one.
        Lie::ReportedFailed => (Found::Unexplained, Found::Lost),
        Lie::NotJournaled => (Found::Lost, Found::Nothing),
        Lie::Elsewhere => (Found::Unexplained, Found::Lost),
    }
}

#[tokio::test]
async fn every_lie_is_found_and_reported() {
    let kinds = OpKind::ALL
        .into_iter()
        .filter(|kind| kind.journaled_as().is_some());
    for kind in kinds {
        for lie in [
            Lie::None,
            Lie::OnlyAcknowledged,
            Lie::Twice,
            Lie::TwiceAmbiguous,
            Lie::ReportedFailed,
            Lie::Undone,
            Lie::NotJournaled,
            Lie::Elsewhere,
        ] {
            if lie == Lie::Elsewhere && kind != OpKind::Upsert {
                continue;
            }
            let (with, without) = expected(lie, kind);
            for (journal, found) in [(true, with), (false, without)] {
                let (totals, violations, _) = account(kind, lie, journal, false).await;
                let case = format!("{kind:?}, {lie:?}, journal {journal}: {totals:?}");
                match found {
                    Found::Nothing => assert!(totals.holds(), "{case}\n{}", violations[0]),
                    Found::Lost => assert!(totals.lost > 0, "{case}"),
                    Found::Twice => assert!(totals.applied_twice > 0, "{case}"),
                    Found::Unexplained => assert!(totals.unexplained > 0, "{case}"),
                }
                assert_eq!(totals.holds(), violations.is_empty(), "{case}");
                let failed = matches!(lie, Lie::TwiceAmbiguous | Lie::ReportedFailed);
                if journal && failed {
                    let text = violations.iter().map(ToString::to_string);
                    let mut text = text.filter(|text| text.contains(HISTORY));
                    assert!(text.next().is_some(), "{case}: no history");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_cluster_is_given_up_in_half_a_minute_and_reported_as_unchecked() {
    let begun = Instant::now();
    let (totals, violations, left) = account(OpKind::Get, Lie::None, false, true).await;
    let took = begun.elapsed().as_secs_f64();
    assert!((20.0..30.1).contains(&took), "it took {took} s");
    assert!(totals.unchecked > 0 && !totals.holds(), "{totals:?}");
    assert!(!totals.is_violated(), "{totals:?}\n{}", violations[0]);
    let told = violations.iter().map(ToString::to_string);
    let mut told = told.filter(|text| text.contains("unchecked: it could not be read"));
    assert!(
        told.next().unwrap().contains(HISTORY),
        "the cause is missing"
    );
    // Eight documents of each worker, and those of all.
    let least = u64::from(WORKERS) * 8 + 64;
    assert!(left.documents >= least, "{left:?}");
    let example = left.example.unwrap();
    assert!(example.starts_with("run:"), "{example}");
}

/// Runs the workload over a lying cluster, which may fall silent at the end, and accounts for it.
async fn account(
    kind: OpKind,
    lie: Lie,
    has_journal: bool,
    falls_silent: bool,
) -> (Totals, Vec<Violation>, Leftovers) {
    let prefix = if has_journal { "" } else { "run:" };
    let state = Arc::new(RunState::new(4711, prefix.to_owned(), LATE, READ_BACK));
    let liar = Liar {
        state: state.clone(),
        store: Arc::default(),
        lie,
        kind,
        falls_silent,
        operations: Arc::default(),
    };
    let log = |worker| Arc::new(Mutex::new(WriteLog::new(worker, has_journal, LATE)));
    let logs: Vec<_> = (0..WORKERS).map(log).collect();
    let unattributed = log(u16::MAX);
    let workers = (0..).zip(&logs).map(|(number, log)| {
        let stats = Arc::new(WorkerStats::default());
        let worker = Worker::new(
            number,
            liar.clone(),
            state.clone(),
            log.clone(),
            stats,
            Arc::new(Pace::new(None)),
        );
        tokio::spawn(worker.run())
    });
    let mut keys = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        keys.extend(worker.await.unwrap());
    }
    let mut left = Leftovers::default();
    if has_journal {
        let mut audit = JournalAudit::new(logs.clone(), unattributed.clone());
        for (opcode, key, argument, cas) in std::mem::take(&mut liar.store.lock().journal) {
            audit.enter(&Mutation {
                opcode,
                key: key.as_bytes(),
                argument: &argument,
                cas,
                spread: Spread {
                    level: Some(DurabilityLevel::Majority),
                    copies: 2,
                    majority: 2,
                },
            });
        }
        verify::compare(&liar, audit.finish(), &unattributed).await;
    } else {
        verify::compare_shared(&liar, &state, &unattributed).await;
        left = verify::remove_leftovers(&liar, &state, keys).await;
        if lie == Lie::None && !falls_silent {
            assert_eq!(liar.store.lock().documents.len(), 0, "left behind");
        }
    }
    let account = Accounting::new(has_journal, logs.iter().chain([&unattributed]));
    (account.totals, account.violations, left)
}

/// A cluster in memory that does one thing wrong.
#[derive(Clone)]
struct Liar {
    state: Arc<RunState>,
    store: Arc<Mutex<Store>>,
    lie: Lie,
    kind: OpKind,
    falls_silent: bool,
    operations: Arc<AtomicU64>,
}

#[derive(Default)]
struct Store {
    documents: HashMap<String, Vec<u8>>,
    journal: Vec<(Opcode, String, Vec<u8>, u64)>,
    /// The last CAS.
    cas: u64,
    /// The number of writes of the kind that it lies about.
    writes: u64,
}

impl Liar {
    /// Yields to others, and ends the run after enough operations.
    async fn turn(&self) -> Result<(), ClientError> {
        if self.operations.fetch_add(1, Ordering::Relaxed) == OPERATIONS {
            self.state.end();
        }
        tokio::task::yield_now().await;
        if self.falls_silent && self.state.has_ended() {
            tokio::time::sleep(TIMEOUT).await;
            return Err(error(ErrorClass::Explained, false));
        }
        Ok(())
    }

    async fn write(
        &self,
        kind: OpKind,
        (opcode, key): (Opcode, &str),
        argument: Vec<u8>,
        change: impl Fn(&mut HashMap<String, Vec<u8>>, &str),
    ) -> Result<u64, ClientError> {
        self.turn().await?;
        let mut store = self.store.lock();
        let store = &mut *store;
        let lie = if kind == self.kind {
            store.writes += 1;
            let told = store.writes.is_multiple_of(EVERY);
            if told { self.lie } else { Lie::None }
        } else {
            Lie::None
        };
        if opcode != Opcode::Set && opcode != Opcode::Add && !store.documents.contains_key(key) {
            return Err(error(ErrorClass::NotFound, false));
        }
        let before = store.documents.get(key).cloned();
        let (times, entries) = match lie {
            Lie::OnlyAcknowledged => (0, 0),
            Lie::Twice | Lie::TwiceAmbiguous => (2, 2),
            Lie::NotJournaled => (1, 0),
            Lie::None | Lie::ReportedFailed | Lie::Undone | Lie::Elsewhere => (1, 1),
        };
        let other = key.replace("r:0000", "r:0001");
        let key = if lie == Lie::Elsewhere { &*other } else { key };
        for _ in 0..times {
            change(&mut store.documents, key);
        }
        store.cas += 1;
        for _ in 0..entries {
            let entry = (opcode, key.to_owned(), argument.clone(), store.cas);
            store.journal.push(entry);
        }
        if lie == Lie::Undone {
            match before {
                Some(before) => drop(store.documents.insert(key.to_owned(), before)),
                None => drop(store.documents.remove(key)),
            }
        }
        match lie {
            Lie::ReportedFailed => Err(error(ErrorClass::Explained, false)),
            Lie::TwiceAmbiguous => Err(error(ErrorClass::Explained, true)),
            _ => Ok(store.cas),
        }
    }

    async fn set(
        &self,
        kind: OpKind,
        to: (Opcode, &str),
        value: &Value<'_>,
    ) -> Result<u64, ClientError> {
        let bytes = serde_json::to_vec(value).unwrap();
        let argument = bytes.iter().copied().take(47).collect();
        self.write(kind, to, argument, |documents, key| {
            documents.insert(key.to_owned(), bytes.clone());
        })
        .await
    }
}

fn error(class: ErrorClass, ambiguous: bool) -> ClientError {
    ClientError {
        class,
        ambiguous,
        timeout: false,
        name: "Lie".to_owned(),
        history: HISTORY.to_owned(),
    }
}

/// Exempts insertions of documents that grow, because later writes into them would fail.
fn insertion(kind: OpKind, value: &Value<'_>) -> OpKind {
    match value {
        Value::Document { .. } => kind,
        _ => OpKind::Get,
    }
}

impl Client for Liar {
    async fn get(&self, key: &str) -> Result<Content, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        let value = found.map(Bytes::from);
        Ok(Content {
            value: value.ok_or_else(|| error(ErrorClass::NotFound, false))?,
            cas: 0,
            flags: None,
            expiry: None,
        })
    }

    async fn get_with_expiry(&self, key: &str) -> Result<Content, ClientError> {
        self.get(key).await
    }

    async fn lookup_array(&self, key: &str) -> Result<Content, ClientError> {
        self.get(key).await
    }

    async fn upsert(
        &self,
        key: &str,
        value: &Value<'_>,
        durable: bool,
    ) -> Result<u64, ClientError> {
        let kind = if durable {
            OpKind::DurableUpsert
        } else {
            OpKind::Upsert
        };
        self.set(kind, (Opcode::Set, key), value).await
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<u64, ClientError> {
        let kind = insertion(OpKind::Insert, value);
        self.set(kind, (Opcode::Add, key), value).await
    }

    async fn replace(&self, _: &str, _: &Value<'_>, _: u64) -> Result<u64, ClientError> {
        Err(error(ErrorClass::Unexplained, false))
    }

    async fn remove(&self, key: &str) -> Result<u64, ClientError> {
        let to = (Opcode::Delete, key);
        self.write(OpKind::Remove, to, Vec::new(), |documents, key| {
            documents.remove(key);
        })
        .await
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<Counted, ClientError> {
        let (to, argument) = ((Opcode::Increment, key), delta.to_be_bytes().to_vec());
        let cas = self
            .write(OpKind::Increment, to, argument, |documents, key| {
                let text = documents.get_mut(key).unwrap();
                let sum: u64 = std::str::from_utf8(text).unwrap().parse().unwrap();
                *text = (sum + delta).to_string().into_bytes();
            })
            .await?;
        Ok(Counted { value: 0, cas })
    }

    async fn append(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let (to, argument) = ((Opcode::Append, key), bytes.clone().into_bytes());
        self.write(OpKind::Append, to, argument, |documents, key| {
            documents.get_mut(key).unwrap().extend(bytes.as_bytes());
        })
        .await
    }

    async fn prepend(&self, _: &str, _: String) -> Result<u64, ClientError> {
        Err(error(ErrorClass::Unexplained, false))
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<u64, ClientError> {
        let (to, argument) = ((Opcode::SubdocMultiMutation, key), element.into());
        self.write(OpKind::ArrayAppend, to, argument, |documents, key| {
            documents.get_mut(key).unwrap().extend(element.as_bytes());
        })
        .await
    }

    async fn touch(&self, _: &str, _: u32) -> Result<u64, ClientError> {
        Err(error(ErrorClass::Unexplained, false))
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        Ok(found.and_then(|bytes| WriteId::find(&bytes).map(|id| id.to_string())))
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
        let written = self.set(OpKind::InsertStatement, (Opcode::Add, key), value);
        written.await.map(|_| ())
    }

    async fn lock(&self, _: &str) -> Result<Content, ClientError> {
        Err(error(ErrorClass::Unexplained, false))
    }

    async fn unlock(&self, _: &str, _: u64) -> Result<(), ClientError> {
        Err(error(ErrorClass::Unexplained, false))
    }

    fn set_password(&self, _: &str, _: &str) {}
}
