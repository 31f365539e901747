//! The accounting finds what a lying cluster does.
//!
//! For each kind of write there is a cluster in memory that does one thing wrong with every
//! seventh of them. Workers, journal audit and final comparison must find exactly that:
//! with a journal and, where documents show it, without.

mod client;
mod lie;
mod store;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadfast_cluster::journal::Spread;
use steadfast_wire::frame_info::DurabilityLevel;
use tokio::time::Instant;

use self::lie::{Found, LIES, Lie, SPECIAL_LIES, expected};
use self::store::{HISTORY, Liar, TIMEOUT};
use crate::accounting::{JournalAudit, Mutation, Totals, Violation, WriteLog};
use crate::measure::WorkerStats;
use crate::report::{Accounting, Leftovers};
use crate::run::verify;
use crate::workload::{OpKind, Pace, RunState, Worker};

const LATE: Duration = Duration::from_secs(15);
const READ_BACK: Duration = Duration::from_secs(20);
const WORKERS: u16 = 2;

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
    let liar = Liar::new(state.clone(), (lie, kind), falls_silent);
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
