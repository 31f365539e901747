//! What is there in the end, beside what the journal says must be.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;

use super::wrong_document;
use crate::accounting::{Applied, Ledger, Violation, Wrong};
use crate::client::{Client, Nature};
use crate::token::Token;
use crate::workload::{Remains, Scene, shared_keys};

/// How many documents are read at once.
const AT_ONCE: usize = 64;
/// How long a document is tried to be read, and how long to wait before it is read again.
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
    let documents = stream::iter(shared_keys(&scene.prefix).enumerate())
        .map(|(index, key)| async move {
            let why = "the last write that was acknowledged is not what is there";
            match read(client, &key).await {
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

/// Removes what the run left behind in a bucket of the user's. What cannot be removed stays.
pub(super) async fn clear_away<C: Client>(client: &C, prefix: &str, remains: &[Remains]) {
    let own = remains.iter().flat_map(|remains| {
        let sure = remains.registers.iter().chain(&remains.counter);
        sure.chain(&remains.unsure).cloned()
    });
    stream::iter(own.chain(shared_keys(prefix)))
        .for_each_concurrent(AT_ONCE, |key| async move {
            if let Err(trouble) = client.remove(&key).await
                && !trouble.is_answer()
            {
                tracing::warn!(key, error = trouble.name, "a document could not be removed");
            }
        })
        .await;
}

async fn check<C: Client>(
    client: &C,
    key: &[u8],
    why: &'static str,
    is_right: impl Fn(&[u8]) -> bool,
) -> Option<Violation> {
    match read(client, &String::from_utf8_lossy(key)).await {
        Ok(found) => {
            let right = found.is_some_and(|found| is_right(&found));
            (!right).then(|| wrong_document(key, why))
        }
        Err(unread) => Some(unread),
    }
}

/// What is there, perhaps nothing. What cannot be read even after a while is a violation.
async fn read<C: Client>(client: &C, key: &str) -> Result<Option<Bytes>, Violation> {
    let begun = Instant::now();
    loop {
        match client.get(key).await {
            Ok(found) => return Ok(Some(found)),
            Err(trouble) if trouble.nature == Nature::NotFound => return Ok(None),
            Err(trouble) if begun.elapsed() > PATIENCE => {
                let wrong = Wrong::Unexplained("it could not be read in the end");
                return Err(Violation::of(wrong, "get", key).with_history(trouble.history));
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}
