//! Violations, planted: a client whose cluster lies, and the accounting that must notice.
//!
//! For each kind of write there is a cluster in memory that does one thing wrong with
//! every seventh of them. What the workers, the audit and the comparison in the end find
//! must be what was planted, with a journal and, where the documents tell, without.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use steadfast_wire::Opcode;
use tokio::time::Instant;

use super::aftermath;
use crate::accounting::{Audit, Ledger, Totals, Violation};
use crate::client::{Client, Nature, Trouble, Value};
use crate::measure::Lane;
use crate::report::Left;
use crate::token::Token;
use crate::workload::{Kind, Scene, Worker};

const LATE: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the client waits for a cluster that does not answer.
const TIMEOUT: Duration = Duration::from_millis(2500);
const OPERATIONS: u64 = 3000;
const WORKERS: u16 = 2;
const EVERY: u64 = 7;
const HISTORY: &str = "#1 planted";

/// What the cluster does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    /// It acknowledges, and applies nothing.
    OnlyAcknowledged,
    /// It applies twice, and acknowledges.
    Twice,
    /// It applies twice, and what is told is that it may have been applied.
    TwicePerhaps,
    /// It applies, and what is told is that it failed.
    SaidToHaveFailed,
    /// It applies and acknowledges, and the document is as before again.
    Undone,
    /// It applies and acknowledges, and the journal does not have it.
    NotJournalled,
    /// It applies to the document of another, and acknowledges.
    Elsewhere,
}

/// What must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Lost,
    Twice,
    Unexplained,
}

/// What a lie about writes of a kind comes to, with a journal and without.
fn expected(lie: Lie, kind: Kind) -> (Found, Found) {
    let grows = matches!(kind, Kind::Append | Kind::ArrayAppend);
    let made = matches!(kind, Kind::Insert | Kind::InsertStatement);
    match lie {
        Lie::None => (Found::Nothing, Found::Nothing),
        Lie::OnlyAcknowledged | Lie::Undone => (Found::Lost, Found::Lost),
        // Writing the same again, or removing it, changes no document.
        Lie::Twice | Lie::TwicePerhaps if grows || kind == Kind::Increment => {
            (Found::Twice, Found::Twice)
        }
        Lie::Twice | Lie::TwicePerhaps => (Found::Twice, Found::Nothing),
        Lie::SaidToHaveFailed if grows || made || kind == Kind::Remove => {
            (Found::Unexplained, Found::Unexplained)
        }
        // More was added than can have been.
        Lie::SaidToHaveFailed if kind == Kind::Increment => (Found::Unexplained, Found::Twice),
        // A read finds neither the last write nor one that may have been applied.
        Lie::SaidToHaveFailed => (Found::Unexplained, Found::Lost),
        Lie::NotJournalled => (Found::Lost, Found::Nothing),
        Lie::Elsewhere => (Found::Unexplained, Found::Lost),
    }
}

#[tokio::test]
async fn every_planted_violation_is_caught_and_told() {
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.place().is_some());
    for kind in kinds {
        for lie in [
            Lie::None,
            Lie::OnlyAcknowledged,
            Lie::Twice,
            Lie::TwicePerhaps,
            Lie::SaidToHaveFailed,
            Lie::Undone,
            Lie::NotJournalled,
            Lie::Elsewhere,
        ] {
            if lie == Lie::Elsewhere && kind != Kind::Upsert {
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
                let told = matches!(lie, Lie::TwicePerhaps | Lie::SaidToHaveFailed);
                if journal && told {
                    let text = violations.iter().map(ToString::to_string);
                    let mut text = text.filter(|text| text.contains(HISTORY));
                    assert!(text.next().is_some(), "{case}: no history");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_no_longer_answers_is_given_up_in_half_a_minute_and_that_is_told() {
    let begun = Instant::now();
    let (totals, violations, left) = account(Kind::Get, Lie::None, false, true).await;
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

/// Runs the workload over a lying cluster, perhaps one that does not answer any more in the end,
/// and takes the account.
async fn account(
    kind: Kind,
    lie: Lie,
    has_journal: bool,
    falls_silent: bool,
) -> (Totals, Vec<Violation>, Left) {
    let prefix = if has_journal { "" } else { "run:" };
    let scene = Arc::new(Scene::new(4711, prefix.to_owned(), LATE, PATIENCE));
    let liar = Liar {
        scene: scene.clone(),
        state: Arc::default(),
        lie,
        kind,
        falls_silent,
        operations: Arc::default(),
    };
    let ledger = |worker| Arc::new(Mutex::new(Ledger::new(worker, has_journal, LATE)));
    let ledgers: Vec<_> = (0..WORKERS).map(ledger).collect();
    let nobodys = ledger(u16::MAX);
    let workers = (0..).zip(&ledgers).map(|(number, ledger)| {
        let lane = Arc::new(Lane::default());
        let worker = Worker::new(
            number,
            liar.clone(),
            scene.clone(),
            ledger.clone(),
            lane,
            None,
        );
        tokio::spawn(worker.run())
    });
    let mut remains = Vec::new();
    for worker in workers.collect::<Vec<_>>() {
        remains.push(worker.await.unwrap());
    }
    let mut left = Left::default();
    if has_journal {
        let mut audit = Audit::new(ledgers.clone(), nobodys.clone());
        for (opcode, key, argument) in std::mem::take(&mut liar.state.lock().journal) {
            audit.enter(opcode, key.as_bytes(), &argument);
        }
        aftermath::compare(&liar, audit.finish(), &nobodys).await;
    } else {
        aftermath::compare_shared(&liar, &scene, &nobodys).await;
        left = aftermath::clear_away(&liar, &scene, &remains).await;
        if lie == Lie::None && !falls_silent {
            assert_eq!(liar.state.lock().documents.len(), 0, "left behind");
        }
    }
    let mut totals = Totals::default();
    let mut violations = Vec::new();
    for ledger in ledgers.iter().chain([&nobodys]) {
        let (more, found) = ledger.lock().close();
        totals.add(&more);
        violations.extend(found);
    }
    (totals, violations, left)
}

/// A cluster in memory that does one thing wrong.
#[derive(Clone)]
struct Liar {
    scene: Arc<Scene>,
    state: Arc<Mutex<State>>,
    lie: Lie,
    kind: Kind,
    falls_silent: bool,
    operations: Arc<AtomicU64>,
}

#[derive(Default)]
struct State {
    documents: HashMap<String, Vec<u8>>,
    journal: Vec<(Opcode, String, Vec<u8>)>,
    /// How many writes there were of the kind that is lied about.
    writes: u64,
}

impl Liar {
    /// Others have their turn, and the run its end.
    async fn turn(&self) -> Result<(), Trouble> {
        if self.operations.fetch_add(1, Ordering::Relaxed) == OPERATIONS {
            self.scene.end();
        }
        tokio::task::yield_now().await;
        if self.falls_silent && self.scene.has_ended() {
            tokio::time::sleep(TIMEOUT).await;
            return Err(trouble(Nature::Explained, false));
        }
        Ok(())
    }

    async fn write(
        &self,
        kind: Kind,
        (opcode, key): (Opcode, &str),
        argument: Vec<u8>,
        change: impl Fn(&mut HashMap<String, Vec<u8>>, &str),
    ) -> Result<(), Trouble> {
        self.turn().await?;
        let mut state = self.state.lock();
        let state = &mut *state;
        let lie = if kind == self.kind {
            state.writes += 1;
            let told = state.writes.is_multiple_of(EVERY);
            if told { self.lie } else { Lie::None }
        } else {
            Lie::None
        };
        if opcode != Opcode::Set && opcode != Opcode::Add && !state.documents.contains_key(key) {
            return Err(trouble(Nature::NotFound, false));
        }
        let before = state.documents.get(key).cloned();
        let (times, entries) = match lie {
            Lie::OnlyAcknowledged => (0, 0),
            Lie::Twice | Lie::TwicePerhaps => (2, 2),
            Lie::NotJournalled => (1, 0),
            Lie::None | Lie::SaidToHaveFailed | Lie::Undone | Lie::Elsewhere => (1, 1),
        };
        let other = key.replace("r:0000", "r:0001");
        let key = if lie == Lie::Elsewhere { &*other } else { key };
        for _ in 0..times {
            change(&mut state.documents, key);
        }
        for _ in 0..entries {
            let entry = (opcode, key.to_owned(), argument.clone());
            state.journal.push(entry);
        }
        if lie == Lie::Undone {
            match before {
                Some(before) => drop(state.documents.insert(key.to_owned(), before)),
                None => drop(state.documents.remove(key)),
            }
        }
        match lie {
            Lie::SaidToHaveFailed => Err(trouble(Nature::Explained, false)),
            Lie::TwicePerhaps => Err(trouble(Nature::Explained, true)),
            _ => Ok(()),
        }
    }

    async fn set(&self, kind: Kind, to: (Opcode, &str), value: &Value<'_>) -> Result<(), Trouble> {
        let bytes = serde_json::to_vec(value).unwrap();
        let argument = bytes.iter().copied().take(47).collect();
        self.write(kind, to, argument, |documents, key| {
            documents.insert(key.to_owned(), bytes.clone());
        })
        .await
    }
}

fn trouble(nature: Nature, ambiguous: bool) -> Trouble {
    Trouble {
        nature,
        ambiguous,
        timeout: false,
        name: "Planted".to_owned(),
        history: HISTORY.to_owned(),
    }
}

/// Insertions are lied about where the document is made once: of one that grows, what is added
/// would fail for it.
fn insertion(kind: Kind, value: &Value<'_>) -> Kind {
    match value {
        Value::Document { .. } => kind,
        _ => Kind::Get,
    }
}

impl Client for Liar {
    async fn get(&self, key: &str) -> Result<Bytes, Trouble> {
        self.turn().await?;
        let found = self.state.lock().documents.get(key).cloned();
        found
            .map(Bytes::from)
            .ok_or_else(|| trouble(Nature::NotFound, false))
    }

    async fn upsert(&self, key: &str, value: &Value<'_>, durable: bool) -> Result<(), Trouble> {
        let kind = if durable {
            Kind::DurableUpsert
        } else {
            Kind::Upsert
        };
        self.set(kind, (Opcode::Set, key), value).await
    }

    async fn insert(&self, key: &str, value: &Value<'_>) -> Result<(), Trouble> {
        let kind = insertion(Kind::Insert, value);
        self.set(kind, (Opcode::Add, key), value).await
    }

    async fn remove(&self, key: &str) -> Result<(), Trouble> {
        let to = (Opcode::Delete, key);
        self.write(Kind::Remove, to, Vec::new(), |documents, key| {
            documents.remove(key);
        })
        .await
    }

    async fn increment(&self, key: &str, delta: u64) -> Result<(), Trouble> {
        let (to, argument) = ((Opcode::Increment, key), delta.to_be_bytes().to_vec());
        self.write(Kind::Increment, to, argument, |documents, key| {
            let text = documents.get_mut(key).unwrap();
            let sum: u64 = std::str::from_utf8(text).unwrap().parse().unwrap();
            *text = (sum + delta).to_string().into_bytes();
        })
        .await
    }

    async fn append(&self, key: &str, bytes: String) -> Result<(), Trouble> {
        let (to, argument) = ((Opcode::Append, key), bytes.clone().into_bytes());
        self.write(Kind::Append, to, argument, |documents, key| {
            documents.get_mut(key).unwrap().extend(bytes.as_bytes());
        })
        .await
    }

    async fn array_append(&self, key: &str, element: &str) -> Result<(), Trouble> {
        let (to, argument) = ((Opcode::SubdocMultiMutation, key), element.into());
        self.write(Kind::ArrayAppend, to, argument, |documents, key| {
            documents.get_mut(key).unwrap().extend(element.as_bytes());
        })
        .await
    }

    async fn select(&self, key: &str) -> Result<Option<String>, Trouble> {
        self.turn().await?;
        let found = self.state.lock().documents.get(key).cloned();
        Ok(found.and_then(|bytes| Token::find(&bytes).map(|token| token.to_string())))
    }

    async fn insert_statement(&self, key: &str, value: &Value<'_>) -> Result<(), Trouble> {
        self.set(Kind::InsertStatement, (Opcode::Add, key), value)
            .await
    }

    async fn lock(&self, _: &str) -> Result<u64, Trouble> {
        Err(trouble(Nature::Unexplained, false))
    }

    async fn unlock(&self, _: &str, _: u64) -> Result<(), Trouble> {
        Err(trouble(Nature::Unexplained, false))
    }

    fn set_password(&self, _: &str, _: &str) {}
}
