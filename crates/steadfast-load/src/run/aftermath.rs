//! What is there in the end, beside what the journal says must be.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::wrong_document;
use crate::accounting::{Applied, Ledger, Violation, Wrong};
use crate::client::{Client, Nature, Trouble};
use crate::report::Left;
use crate::token::Token;
use crate::workload::{Remains, Scene, shared_keys};

/// How many documents are read at once.
const AT_ONCE: usize = 64;
/// How many are removed at once: a node that does not answer must not hold up what others have.
const REMOVED_AT_ONCE: usize = 512;
/// How long a document is tried to be read in a cluster of our own, and how long to wait before
/// one is read again.
const PATIENCE: Duration = Duration::from_secs(10);
const REST: Duration = Duration::from_millis(20);

/// Reads every document that was written again and again, and every counter, and notes what is
/// not as the journal has it.
pub(super) async fn compare<C: Client>(client: &C, applied: Applied, ledger: &Mutex<Ledger>) {
    let documents = stream::iter(applied.last)
        .map(|(key, last)| async move {
            let why = "the last write that was applied is not what is there";
            check(client, &key, why, |found| Token::find(found) == Some(last)).await
        })
        .buffer_unordered(AT_ONCE);
    note(documents, ledger).await;
    let counters = stream::iter(applied.sums)
        .map(|(key, sum)| async move {
            let why = "the counter is not the sum of what was applied to it";
            check(client, &key, why, |found| {
                found == sum.to_string().as_bytes()
            })
            .await
        })
        .buffer_unordered(AT_ONCE);
    note(counters, ledger).await;
}

/// Reads the documents of all workers, and notes what is not what may be there by what the
/// workers were told.
pub(super) async fn compare_shared<C: Client>(client: &C, scene: &Scene, ledger: &Mutex<Ledger>) {
    let gives_up = scene.gives_up().unwrap_or_else(Instant::now);
    let documents = stream::iter(shared_keys(&scene.prefix).enumerate())
        .map(|(index, key)| async move {
            let why = "the last write that was acknowledged is not what is there";
            match read(client, &key, gives_up).await {
                Ok(found) => {
                    let found = found.as_deref().map(Token::find);
                    // A document without a token is none of ours.
                    let right = found != Some(None) && scene.shared.may_be(index, found.flatten());
                    (!right).then(|| wrong_document(key.as_bytes(), why))
                }
                Err(unread) => Some(unread),
            }
        })
        .buffer_unordered(AT_ONCE);
    note(documents, ledger).await;
}

async fn note(found: impl Stream<Item = Option<Violation>>, ledger: &Mutex<Ledger>) {
    let violations = found.filter_map(|violation| async { violation });
    violations
        .for_each(|violation| async { ledger.lock().violate(violation) })
        .await;
}

/// Removes what the run left behind in a bucket of the user's, for as long as there is time.
/// What could not be removed may still be there, and is told.
///
/// Dropping the future leaves what was not removed yet.
pub(super) async fn clear_away<C: Client>(client: &C, scene: &Scene, remains: &[Remains]) -> Left {
    let own = remains.iter().flat_map(|remains| {
        let sure = remains.registers.iter().chain(&remains.counter);
        sure.chain(&remains.unsure).cloned()
    });
    let until = scene.clears_until();
    let (documents, example) = (AtomicU64::new(0), Mutex::new(None));
    stream::iter(own.chain(shared_keys(&scene.prefix)))
        .for_each_concurrent(REMOVED_AT_ONCE, |key| async {
            let removed = match Instant::now() < until {
                true => timeout_at(until, client.remove(&key)).await.ok(),
                false => None,
            };
            match removed {
                Some(Ok(())) => {}
                Some(Err(trouble)) if trouble.is_answer() => {}
                Some(Err(_)) | None => {
                    documents.fetch_add(1, Ordering::Relaxed);
                    example.lock().get_or_insert(key);
                }
            }
        })
        .await;
    Left {
        documents: documents.into_inner(),
        example: example.into_inner(),
    }
}

async fn check<C: Client>(
    client: &C,
    key: &[u8],
    why: &'static str,
    is_right: impl Fn(&[u8]) -> bool,
) -> Option<Violation> {
    let until = Instant::now() + PATIENCE;
    match read(client, &String::from_utf8_lossy(key), until).await {
        Ok(found) => {
            let right = found.is_some_and(|found| is_right(&found));
            (!right).then(|| wrong_document(key, why))
        }
        Err(unread) => Some(unread),
    }
}

/// What is there, perhaps nothing. What cannot be read until then is a violation.
async fn read<C: Client>(
    client: &C,
    key: &str,
    until: Instant,
) -> Result<Option<Bytes>, Violation> {
    let mut last = Trouble::unanswered();
    while Instant::now() < until {
        match timeout_at(until, client.get(key)).await {
            Ok(Ok(found)) => return Ok(Some(found)),
            Ok(Err(trouble)) if trouble.nature == Nature::NotFound => return Ok(None),
            Ok(Err(trouble)) => last = trouble,
            Err(_) => break,
        }
        tokio::time::sleep(REST).await;
    }
    let why = "it could not be read in the end";
    let wrong = match last.nature {
        Nature::Unexplained => Wrong::Unexplained(why),
        Nature::Explained | Nature::NotFound | Nature::Authentication => Wrong::Unchecked(why),
    };
    Err(Violation::of(wrong, "get", key).with_history(last.history))
}
