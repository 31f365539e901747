//! The reader of the journal, at work beside the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::accounting::{Applied, Audit, Ledger};
use crate::embedded::Embedded;

/// How often the journal is read.
const AUDIT: Duration = Duration::from_millis(15);

/// Reads the journal as it grows, on the cluster's threads.
pub(super) struct Following {
    stopped: Arc<AtomicBool>,
    reader: JoinHandle<Option<Audit>>,
}

impl Following {
    /// Begins to read.
    pub(super) fn start(
        embedded: &Embedded,
        ledgers: Vec<Arc<Mutex<Ledger>>>,
        nobodys: Arc<Mutex<Ledger>>,
    ) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let cluster = embedded.cluster().clone();
        let stop = stopped.clone();
        let reader = embedded.threads().spawn(async move {
            let mut audit = Audit::new(ledgers, nobodys);
            loop {
                let last = stop.load(Ordering::Acquire);
                if !audit.catch_up(&cluster) {
                    return None;
                }
                if last {
                    return Some(audit);
                }
                tokio::time::sleep(AUDIT).await;
            }
        });
        Self { stopped, reader }
    }

    /// Ends when the journal has forgotten what was not read yet: then nothing can be accounted
    /// for any more. Without a journal it never ends.
    ///
    /// Dropping the future leaves the reader at work.
    pub(super) async fn overran(following: &mut Option<Self>) {
        match following {
            // Before it is stopped, it ends for no other reason but a panic.
            Some(following) => drop((&mut following.reader).await),
            None => std::future::pending().await,
        }
    }

    /// Reads what is left, and ends.
    pub(super) async fn finish(self) -> anyhow::Result<Applied> {
        self.stopped.store(true, Ordering::Release);
        let audit = self.reader.await.context("reading the journal panicked")?;
        let audit = audit.context("the journal forgot entries before they were read")?;
        Ok(audit.finish())
    }
}
