//! What is there in the end, beside what the journal says must be.

use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt, stream};
use parking_lot::Mutex;

use super::wrong_document;
use crate::accounting::{Applied, Ledger, Violation, Wrong};
use crate::client::{Client, Nature};
use crate::token::Token;
use crate::workload::{Remains, shared_keys};

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
    let text = String::from_utf8_lossy(key);
    let begun = Instant::now();
    loop {
        match client.get(&text).await {
            Ok(found) => return (!is_right(&found)).then(|| wrong_document(key, why)),
            Err(trouble) if trouble.nature == Nature::NotFound => {
                return Some(wrong_document(key, why));
            }
            Err(trouble) if begun.elapsed() > PATIENCE => {
                let wrong = Wrong::Unexplained("it could not be read in the end");
                return Some(Violation::of(wrong, "get", text).with_history(trouble.history));
            }
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}
