//! Final comparison of the documents, and removal of what the run wrote.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use steadfast::reason::OPERATION_FAILED;
use steadfast::{Backoff, BestEffort, Failure};
use tokio::time::{Instant, timeout_at};

use crate::accounting::{ExpectedDocuments, Violation, ViolationKind, WriteLog};
use crate::client::{Client, ClientError, Content, ErrorClass};
use crate::report::Leftovers;
use crate::workload::keys::{Owner, all_shared, owner, pack, unpack};
use crate::workload::{FinalRead, RunState, whole};

/// How long the rest of the operations on shared documents may be checked.
const LAST_CHECKS: Duration = Duration::from_secs(10);
/// How many documents are read at once.
const AT_ONCE: usize = 64;
/// How many are removed at once: more, so that a silent node does not delay the others.
const REMOVED_AT_ONCE: usize = 512;
/// How long a document of an embedded cluster may take to be read.
const READ_TIME: Duration = Duration::from_secs(10);
/// The pause before a document is read again.
const REST: Duration = Duration::from_millis(20);

/// Reads all registers and counters of workers, and records those that differ from the journal.
pub(super) async fn compare<C: Client>(
    client: &C,
    expected: ExpectedDocuments,
    log: &Mutex<WriteLog>,
) {
    let documents = expected.last.into_iter().map(|(key, last)| async move {
        let why = "the document is not the last write that was applied";
        let is_right = |found: &[u8]| whole(found) == Some(last);
        check(client, &key, why, is_right).await
    });
    record(documents, log).await;
    let counters = expected.sums.into_iter().map(|(key, sum)| async move {
        let why = "the counter is not the sum of the additions that were applied";
        let is_right = |found: &[u8]| found == sum.to_string().as_bytes();
        check(client, &key, why, is_right).await
    });
    record(counters, log).await;
}

async fn check<C: Client>(
    client: &C,
    key: &[u8],
    why: &'static str,
    is_right: impl Fn(&[u8]) -> bool,
) -> Option<Violation> {
    let key = String::from_utf8_lossy(key);
    match read(client, &key, READ_TIME).await {
        Ok(Some(found)) if is_right(&found.value) => None,
        Ok(_) => Some(Violation::new(ViolationKind::Lost(why), "get", key)),
        Err(unread) => Some(unread),
    }
}

/// Compares the keys of all documents with those that the journal has: no removed document may be
/// back, and none that was made may be missing.
pub(super) fn compare_keys(keys: &[Vec<u8>], expected: &ExpectedDocuments, log: &Mutex<WriteLog>) {
    let made = keys.iter().filter_map(|key| match owner(key)? {
        Owner::Made(id) => Some(pack(id)),
        Owner::Worker(_) | Owner::All(_) => None,
    });
    let found: HashSet<u64> = made.collect();
    for (id, why) in found
        .difference(&expected.made)
        .map(|id| (id, "a document that was removed is back"))
        .chain(
            expected
                .made
                .difference(&found)
                .map(|id| (id, "a document that was made is missing")),
        )
    {
        let kind = ViolationKind::Lost(why);
        let violation = Violation::new(kind, "document", unpack(*id).to_string());
        log.lock().violate(violation);
    }
}

/// Reads the documents of all workers once more, as part of their histories.
pub(super) async fn read_shared<C: Client>(client: &C, state: &RunState, log: &Mutex<WriteLog>) {
    let deadline = state.read_back_deadline().unwrap_or_else(Instant::now);
    let documents = (0..)
        .zip(all_shared(&state.prefix))
        .map(|(index, key)| async move {
            let left = deadline.saturating_duration_since(Instant::now());
            let reading = FinalRead::begin(state, index);
            match read(client, &key, left).await {
                Ok(found) => {
                    reading.end(state, found.as_ref());
                    None
                }
                Err(unread) => {
                    reading.abandon(state);
                    Some(unread)
                }
            }
        });
    record(documents, log).await;
}

/// Checks what is left of the histories, and records the violations of all of them, and the
/// operations that took too long.
pub(super) fn close_histories(state: &RunState, log: &Mutex<WriteLog>) {
    let mut log = log.lock();
    let deadline = Instant::now() + LAST_CHECKS;
    for (history, key) in state.shared.iter().zip(all_shared(&state.prefix)) {
        let closed = history.close(deadline);
        log.ordered(closed.checked, closed.unchecked);
        for example in closed.violations {
            log.violate(Violation::without_order(example, key.clone()));
        }
    }
    for overrun in state.overruns() {
        log.violate(overrun);
    }
}

async fn record<F: Future<Output = Option<Violation>>>(
    checks: impl Iterator<Item = F>,
    log: &Mutex<WriteLog>,
) {
    let violations = stream::iter(checks).buffer_unordered(AT_ONCE);
    let violations = violations.filter_map(|violation| async { violation });
    violations
        .for_each(|violation| async { log.lock().violate(violation) })
        .await;
}

/// Removes the run's documents from a given cluster, as long as there is time, and returns what may
/// still be there.
///
/// Dropping the future leaves the documents that were not removed yet.
pub(super) async fn remove_leftovers<C: Client>(
    client: &C,
    state: &RunState,
    keys: Vec<String>,
) -> Leftovers {
    let deadline = state.clean_up_deadline();
    let (documents, example) = (AtomicU64::new(0), Mutex::new(None));
    stream::iter(keys.into_iter().chain(all_shared(&state.prefix)))
        .for_each_concurrent(REMOVED_AT_ONCE, |key| async {
            let removed = if Instant::now() < deadline {
                timeout_at(deadline, client.remove(&key)).await.ok()
            } else {
                None
            };
            match removed {
                Some(Ok(_)) => {}
                Some(Err(error)) if error.is_not_found() => {}
                Some(Err(_)) | None => {
                    documents.fetch_add(1, Ordering::Relaxed);
                    example.lock().get_or_insert(key);
                }
            }
        })
        .await;
    Leftovers {
        documents: documents.into_inner(),
        example: example.into_inner(),
    }
}

/// Reads a document, with retries for this time. Returns none if it does not exist, and a violation
/// if it cannot be read.
async fn read<C: Client>(
    client: &C,
    key: &str,
    within: Duration,
) -> Result<Option<Content>, Violation> {
    let read = steadfast::retry(BestEffort::new(Backoff::constant(REST)))
        .operation("get")
        .idempotent(true)
        .timeout(within)
        // On purpose: the client has retried each read, within its own timeout.
        .classify(|_: &ClientError| Failure::in_flight(&OPERATION_FAILED))
        .run(|_| async {
            match client.get(key).await {
                Ok(found) => Ok(Some(found)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await;
    read.map_err(|error| {
        let last = error.into_last_error();
        let last = last.unwrap_or_else(ClientError::unanswered);
        let why = "it could not be read at the end";
        let kind = match last.class {
            ErrorClass::Unexplained => ViolationKind::Unexplained(why),
            _ => ViolationKind::Unchecked(why),
        };
        Violation::new(kind, "get", key).with_history(last.history)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_id::WriteId;

    #[test]
    fn documents_that_came_back_or_went_missing_are_lost() {
        let id = |number| WriteId { worker: 3, number };
        let key = |number| format!("i:{}", id(number)).into_bytes();
        let expected = ExpectedDocuments {
            made: [pack(id(1)), pack(id(2))].into(),
            ..ExpectedDocuments::default()
        };
        let register = b"r:0003:1".to_vec();
        for (keys, because) in [
            (vec![key(1), key(2), register], None),
            (vec![key(1)], Some("a document that was made is missing")),
            (
                vec![key(1), key(2), key(4)],
                Some("a document that was removed is back"),
            ),
        ] {
            let log = Mutex::new(WriteLog::new(0, true, Duration::ZERO));
            compare_keys(&keys, &expected, &log);
            let (totals, violations) = log.into_inner().close();
            assert_eq!(totals.lost, u64::from(because.is_some()), "{violations:?}");
            let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
            assert!(
                because.is_none_or(|because| texts[0].contains(because)),
                "{texts:?}"
            );
        }
    }
}
