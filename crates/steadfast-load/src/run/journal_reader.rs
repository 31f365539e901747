//! Reads the cluster's journal during the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::accounting::{ExpectedDocuments, JournalAudit, WriteLog};
use crate::embedded::Embedded;
use crate::workload::RunState;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_millis(15);

/// A task on the cluster's runtime that reads the journal as it grows.
pub(super) struct JournalReader {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<Option<JournalAudit>>,
}

impl JournalReader {
    pub(super) fn start(
        embedded: &Embedded,
        logs: &[Arc<Mutex<WriteLog>>],
        unattributed: &Arc<Mutex<WriteLog>>,
        state: &Arc<RunState>,
    ) -> Self {
        let mut audit = JournalAudit::new(logs.to_vec(), unattributed.clone(), state.clone());
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = stopped.clone();
        let cluster = embedded.cluster().clone();
        let task = embedded.runtime().spawn(async move {
            loop {
                let last = stop.load(Ordering::Acquire);
                if !audit.catch_up(&cluster) {
                    return None;
                }
                if last {
                    return Some(audit);
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { stopped, task }
    }

    /// Waits until the journal drops entries before they are read, or the task panics: then writes
    /// can no longer be accounted for. Without a reader, waits forever.
    ///
    /// Cancel-safe. Must not be called again after it has completed.
    pub(super) async fn failure(reader: &mut Option<Self>) {
        match reader {
            Some(reader) => drop((&mut reader.task).await),
            None => std::future::pending().await,
        }
    }

    /// Reads the remaining entries.
    pub(super) async fn finish(self) -> anyhow::Result<ExpectedDocuments> {
        self.stopped.store(true, Ordering::Release);
        let audit = self.task.await.context("reading the journal panicked")?;
        let audit = audit.context("the journal dropped entries before they were read")?;
        Ok(audit.finish())
    }
}
