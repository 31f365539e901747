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
const OPERATIONS: u64 = 1500;
/// How long a lock holds.
const LOCKED: Duration = Duration::from_secs(1);
const WORKERS: u16 = 2;
const EVERY: u64 = 7;
const HISTORY: &str = "#1 a lie";

/// The wrong thing that the cluster or the client does.
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
    /// Returns another CAS, as for an answer that is masked as success.
    WrongCas,
    /// Stores the value with a letter changed.
    Corrupted,
    /// Stores only the beginning of the value.
    Truncated,
    /// Adds at the wrong end.
    WrongEnd,
    /// Returns another value of a counter.
    WrongResult,
    /// Calls rejections ambiguous.
    CalledAmbiguous,
}

/// The lies about every kind of write.
const LIES: [Lie; 8] = [
    Lie::None,
    Lie::OnlyAcknowledged,
    Lie::Twice,
    Lie::TwiceAmbiguous,
    Lie::ReportedFailed,
    Lie::Undone,
    Lie::NotJournaled,
    Lie::WrongCas,
];

/// The lies about some kinds, which are found with a journal and without.
const SPECIAL_LIES: [(Lie, OpKind); 16] = [
    (Lie::Corrupted, OpKind::Upsert),
    (Lie::Corrupted, OpKind::DurableUpsert),
    (Lie::Corrupted, OpKind::Insert),
    (Lie::Corrupted, OpKind::InsertStatement),
    (Lie::Corrupted, OpKind::Replace),
    (Lie::Corrupted, OpKind::Append),
    (Lie::Corrupted, OpKind::Prepend),
    (Lie::Truncated, OpKind::Upsert),
    (Lie::Truncated, OpKind::DurableUpsert),
    (Lie::Truncated, OpKind::Insert),
    (Lie::Truncated, OpKind::Replace),
    (Lie::Truncated, OpKind::Append),
    (Lie::WrongEnd, OpKind::Append),
    (Lie::WrongEnd, OpKind::Prepend),
    (Lie::WrongResult, OpKind::Increment),
    (Lie::CalledAmbiguous, OpKind::Get),
];

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
    // Only on documents of all workers, whose histories have no order then.
    let shared = matches!(
        kind,
        OpKind::DurableUpsert | OpKind::Replace | OpKind::Prepend
    );
    match lie {
        Lie::None => (Found::Nothing, Found::Nothing),
        Lie::OnlyAcknowledged if shared => (Found::Lost, Found::Unexplained),
        Lie::Undone if shared => (Found::Unexplained, Found::Unexplained),
        Lie::OnlyAcknowledged | Lie::Undone => (Found::Lost, Found::Lost),
        // Repeating the same write or removal changes no document.
        Lie::Twice | Lie::TwiceAmbiguous if grows || kind == OpKind::Increment => {
            (Found::Twice, Found::Twice)
        }
        Lie::Twice | Lie::TwiceAmbiguous if kind == OpKind::Prepend => {
            (Found::Twice, Found::Unexplained)
        }
        Lie::Twice | Lie::TwiceAmbiguous => (Found::Twice, Found::Nothing),
        Lie::ReportedFailed if grows || made || shared || kind == OpKind::Remove => {
            (Found::Unexplained, Found::Unexplained)
        }
        // The counter is higher than possible.
        Lie::ReportedFailed if kind == OpKind::Increment => (Found::Unexplained, Found::Twice),
        // A read finds neither the last acknowledged write nor an ambiguous one.
        Lie::ReportedFailed => (Found::Unexplained, Found::Lost),
        Lie::NotJournaled => (Found::Lost, Found::Nothing),
        Lie::Elsewhere => (Found::Unexplained, Found::Lost),
        // A statement returns no CAS.
        Lie::WrongCas if kind == OpKind::InsertStatement => (Found::Nothing, Found::Nothing),
        Lie::WrongCas
        | Lie::Corrupted
        | Lie::Truncated
        | Lie::WrongEnd
        | Lie::WrongResult
        | Lie::CalledAmbiguous => (Found::Unexplained, Found::Unexplained),
    }
}

#[tokio::test(start_paused = true)]
async fn every_lie_is_found_and_reported() {
    let kinds = OpKind::ALL
        .into_iter()
        .filter(|kind| kind.journaled_as().is_some());
    let lies = kinds.flat_map(|kind| LIES.map(|lie| (lie, kind)));
    let lies = lies.chain([(Lie::Elsewhere, OpKind::Upsert)]);
    for (lie, kind) in lies.chain(SPECIAL_LIES) {
        let (with, without) = expected(lie, kind);
        for (journal, found) in [(true, with), (false, without)] {
            if lie == Lie::CalledAmbiguous && !journal {
                // There would be too many possible orders.
                continue;
            }
            let (totals, violations, _) = account(kind, lie, journal, false).await;
            let case = format!("{kind:?}, {lie:?}, journal {journal}: {totals:?}");
            match found {
                Found::Nothing => assert!(totals.holds(), "{case}\n{}", violations[0]),
                Found::Lost => assert!(totals.lost > 0, "{case}"),
                Found::Twice => assert!(totals.applied_twice > 0, "{case}"),
                Found::Unexplained => assert!(totals.unexplained > 0, "{case}"),
            }
            assert_eq!(totals.holds(), violations.is_empty(), "{case}");
            assert!(totals.ordered > 250 && totals.unordered == 0, "{case}");
            let failed = matches!(lie, Lie::TwiceAmbiguous | Lie::ReportedFailed);
            if journal && failed {
                let text = violations.iter().map(ToString::to_string);
                let mut text = text.filter(|text| text.contains(HISTORY));
                assert!(text.next().is_some(), "{case}: no history");
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
    let state = Arc::new(RunState::new(
        4711,
        prefix.to_owned(),
        has_journal,
        TIMEOUT,
        (LATE, READ_BACK),
    ));
    state.set_locking(true);
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
        verify::read_shared(&liar, &state, &unattributed).await;
        let mut audit = JournalAudit::new(logs.clone(), unattributed.clone(), state.clone());
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
        let expected = audit.finish();
        let keys: Vec<_> = liar.store.lock().documents.keys().cloned().collect();
        let keys: Vec<_> = keys.into_iter().map(String::into_bytes).collect();
        verify::compare_keys(&keys, &expected, &unattributed);
        verify::compare(&liar, expected, &unattributed).await;
    } else {
        verify::read_shared(&liar, &state, &unattributed).await;
        left = verify::remove_leftovers(&liar, &state, keys).await;
        if lie == Lie::None && !falls_silent {
            assert_eq!(liar.store.lock().documents.len(), 0, "left behind");
        }
    }
    verify::close_histories(&state, &unattributed);
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
    documents: HashMap<String, Stored>,
    journal: Vec<(Opcode, String, Vec<u8>, u64)>,
    /// The last CAS.
    cas: u64,
    /// The number of writes of the kind that it lies about.
    writes: u64,
}

#[derive(Clone, Default)]
struct Stored {
    bytes: Vec<u8>,
    cas: u64,
    expiry: u32,
    locked: Option<Instant>,
}

impl Stored {
    fn is_locked(&self) -> bool {
        self.locked.is_some_and(|until| until > Instant::now())
    }
}

/// A write that a worker asks for.
struct Asked<'a> {
    kind: OpKind,
    opcode: Opcode,
    key: &'a str,
    argument: Vec<u8>,
    /// The CAS that the document must have, if any.
    cas: Option<u64>,
}

impl Liar {
    /// Yields to others, and ends the run after enough operations.
    async fn turn(&self) -> Result<(), ClientError> {
        if self.operations.fetch_add(1, Ordering::Relaxed) == OPERATIONS {
            self.state.end();
        }
        if self.falls_silent {
            tokio::task::yield_now().await;
        } else {
            // Operations that follow each other must not look concurrent.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if self.falls_silent && self.state.has_ended() {
            tokio::time::sleep(TIMEOUT).await;
            return Err(error(ErrorClass::Explained, false));
        }
        Ok(())
    }

    /// Rejects an operation, or calls the rejection ambiguous.
    fn reject<T>(&self, class: ErrorClass) -> Result<T, ClientError> {
        Err(error(class, self.lie == Lie::CalledAmbiguous))
    }

    async fn write(
        &self,
        asked: Asked<'_>,
        change: impl Fn(Option<&Stored>, Lie) -> Option<Stored>,
    ) -> Result<u64, ClientError> {
        self.turn().await?;
        let Asked {
            kind,
            opcode,
            key,
            argument,
            cas,
        } = asked;
        // A client waits until a lock is gone.
        loop {
            let is_free = {
                let store = self.store.lock();
                let current = store.documents.get(key);
                current.is_none_or(|current| !current.is_locked() || cas == Some(current.cas))
            };
            if is_free {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut store = self.store.lock();
        let store = &mut *store;
        let current = store.documents.get(key);
        let class = match (opcode, current) {
            (Opcode::Add, Some(_)) => Some(ErrorClass::Exists),
            (Opcode::Set | Opcode::Add, _) => None,
            (_, None) => Some(ErrorClass::NotFound),
            (_, Some(current)) if cas.is_some_and(|cas| cas != current.cas) => {
                Some(ErrorClass::CasMismatch)
            }
            (_, Some(_)) => None,
        };
        if let Some(class) = class {
            return self.reject(class);
        }
        let lie = if kind == self.kind {
            store.writes += 1;
            let every = match kind {
                // These are rare.
                OpKind::Replace | OpKind::Prepend => 2,
                _ => EVERY,
            };
            let told = store.writes.is_multiple_of(every);
            if told { self.lie } else { Lie::None }
        } else {
            Lie::None
        };
        let (times, entries) = match lie {
            Lie::OnlyAcknowledged => (0, 0),
            Lie::Twice | Lie::TwiceAmbiguous => (2, 2),
            Lie::NotJournaled => (1, 0),
            _ => (1, 1),
        };
        let other = key.replace("r:0000", "r:0001");
        let key = if lie == Lie::Elsewhere { &*other } else { key };
        let before = store.documents.get(key).cloned();
        for time in 0..times.max(1) {
            store.cas += 1;
            if time < entries {
                let entry = (opcode, key.to_owned(), argument.clone(), store.cas);
                store.journal.push(entry);
            }
            if time >= times {
                continue;
            }
            match change(store.documents.get(key), lie) {
                Some(mut changed) => {
                    changed.cas = store.cas;
                    changed.locked = None;
                    store.documents.insert(key.to_owned(), changed);
                }
                None => drop(store.documents.remove(key)),
            }
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
            Lie::WrongCas => Ok(store.cas + (1 << 40)),
            _ => Ok(store.cas),
        }
    }

    async fn set(
        &self,
        kind: OpKind,
        (opcode, key): (Opcode, &str),
        value: &Value<'_>,
        cas: Option<u64>,
    ) -> Result<u64, ClientError> {
        let bytes = serde_json::to_vec(value).unwrap();
        let argument = bytes.iter().copied().take(47).collect();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas,
        };
        self.write(asked, |_, lie| {
            let mut bytes = bytes.clone();
            match lie {
                Lie::Corrupted => bytes[48] ^= 1,
                Lie::Truncated => bytes.truncate(40),
                _ => {}
            }
            Some(Stored {
                bytes,
                ..Stored::default()
            })
        })
        .await
    }

    /// Adds text to a document, in place of its last bytes.
    async fn grow(
        &self,
        (kind, opcode, key): (OpKind, Opcode, &str),
        text: String,
        before: bool,
    ) -> Result<u64, ClientError> {
        let argument = text.clone().into_bytes();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        self.write(asked, |current, lie| {
            let mut changed = current.unwrap().clone();
            let mut text = text.clone().into_bytes();
            match lie {
                Lie::Corrupted => text[16] ^= 1,
                Lie::Truncated => text.truncate(9),
                _ => {}
            }
            changed.bytes = match before != (lie == Lie::WrongEnd) {
                true => [text, changed.bytes].concat(),
                false => [changed.bytes, text].concat(),
            };
            Some(changed)
        })
        .await
    }

    async fn read(&self, key: &str) -> Result<Stored, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        match found {
            Some(found) => Ok(found),
            None => self.reject(ErrorClass::NotFound),
        }
    }
}

fn content(found: Stored, expiry: Option<u32>) -> Content {
    Content {
        cas: if found.is_locked() {
            u64::MAX
        } else {
            found.cas
        },
        value: Bytes::from(found.bytes),
        flags: Some(0x0200_0000),
        expiry,
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
        Ok(content(self.read(key).await?, None))
    }

    async fn get_with_expiry(&self, key: &str) -> Result<Content, ClientError> {
        let found = self.read(key).await?;
        let expiry = found.expiry;
        Ok(content(found, Some(expiry)))
    }

    async fn lookup_array(&self, key: &str) -> Result<Content, ClientError> {
        let mut found = self.read(key).await?;
        found.bytes.drain(..5);
        found.bytes.pop();
        Ok(Content {
            flags: None,
            ..content(found, None)
        })
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
        self.set(kind, (Opcode::Set, key), value, None).await
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<u64, ClientError> {
        let kind = insertion(OpKind::Insert, value);
        self.set(kind, (Opcode::Add, key), value, None).await
    }

    async fn replace(&self, key: &str, value: &Value<'_>, cas: u64) -> Result<u64, ClientError> {
        let kind = insertion(OpKind::Replace, value);
        self.set(kind, (Opcode::Replace, key), value, Some(cas))
            .await
    }

    async fn remove(&self, key: &str) -> Result<u64, ClientError> {
        let (kind, opcode) = (OpKind::Remove, Opcode::Delete);
        let argument = Vec::new();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        self.write(asked, |_, _| None).await
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<Counted, ClientError> {
        let (kind, opcode) = (OpKind::Increment, Opcode::Increment);
        let argument = delta.to_be_bytes().to_vec();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        let sum = AtomicU64::new(0);
        let adding = self.write(asked, |current, lie| {
            let mut changed = current.unwrap().clone();
            let before: u64 = std::str::from_utf8(&changed.bytes)
                .unwrap()
                .parse()
                .unwrap();
            let after = before.wrapping_add(delta);
            let shown = after.wrapping_add(u64::from(lie == Lie::WrongResult));
            sum.store(shown, Ordering::Relaxed);
            changed.bytes = after.to_string().into_bytes();
            Some(changed)
        });
        let cas = adding.await?;
        let value = sum.into_inner();
        Ok(Counted { value, cas })
    }

    async fn append(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let to = (OpKind::Append, Opcode::Append, key);
        self.grow(to, bytes, false).await
    }

    async fn prepend(&self, key: &str, bytes: String) -> Result<u64, ClientError> {
        let to = (OpKind::Prepend, Opcode::Prepend, key);
        self.grow(to, bytes, true).await
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<u64, ClientError> {
        let (kind, opcode) = (OpKind::ArrayAppend, Opcode::SubdocMultiMutation);
        let argument = element.into();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        self.write(asked, |current, _| {
            let mut changed = current.unwrap().clone();
            changed.bytes.truncate(changed.bytes.len() - 2);
            let comma = if changed.bytes.ends_with(b"[") {
                ""
            } else {
                ","
            };
            let more = format!("{comma}\"{element}\"]}}");
            changed.bytes.extend(more.as_bytes());
            Some(changed)
        })
        .await
    }

    async fn touch(&self, key: &str, expiry: u32) -> Result<u64, ClientError> {
        let (kind, opcode) = (OpKind::Touch, Opcode::Touch);
        let argument = expiry.to_be_bytes().to_vec();
        let asked = Asked {
            kind,
            opcode,
            key,
            argument,
            cas: None,
        };
        self.write(asked, |current, _| {
            let mut changed = current.unwrap().clone();
            changed.expiry = expiry;
            Some(changed)
        })
        .await
    }

    async fn select(&self, key: &str) -> Result<Option<String>, ClientError> {
        self.turn().await?;
        let found = self.store.lock().documents.get(key).cloned();
        Ok(found.and_then(|found| WriteId::find(&found.bytes).map(|id| id.to_string())))
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), ClientError> {
        let to = (Opcode::Add, key);
        let written = self.set(OpKind::InsertStatement, to, value, None);
        written.await.map(|_| ())
    }

    async fn lock(&self, key: &str) -> Result<Content, ClientError> {
        self.turn().await?;
        let mut store = self.store.lock();
        let store = &mut *store;
        let Some(found) = store.documents.get_mut(key) else {
            return self.reject(ErrorClass::NotFound);
        };
        if found.is_locked() {
            return Err(error(ErrorClass::Explained, false));
        }
        store.cas += 1;
        found.cas = store.cas;
        let locked = content(found.clone(), None);
        found.locked = Some(Instant::now() + LOCKED);
        Ok(locked)
    }

    async fn unlock(&self, key: &str, cas: u64) -> Result<(), ClientError> {
        // Others may write first.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let mut store = self.store.lock();
        match store.documents.get_mut(key) {
            Some(found) if found.is_locked() && found.cas == cas => {
                found.locked = None;
                Ok(())
            }
            Some(_) => self.reject(ErrorClass::CasMismatch),
            None => self.reject(ErrorClass::NotFound),
        }
    }

    fn set_password(&self, _: &str, _: &str) {}
}
