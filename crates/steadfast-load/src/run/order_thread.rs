//! Checks the order of operations during the run, on its own thread.
//!
//! The check of one document can take long, when many operations had no response. On the runtime of
//! the workload it would delay the operations that are measured. With a journal, its reader checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Handle;

use crate::workload::RunState;

/// The pause when everything is checked that can be.
const PAUSE: Duration = Duration::from_millis(10);

/// The thread. Dropping it stops it after a step.
pub(super) struct OrderThread {
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OrderThread {
    /// # Errors
    /// If the system has no thread left.
    pub(super) fn start(state: &Arc<RunState>) -> anyhow::Result<Self> {
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, state) = (stopped.clone(), state.clone());
        // The run has the clock of its runtime.
        let runtime = Handle::current();
        let check = move || {
            let _entered = runtime.enter();
            while !stop.load(Ordering::Acquire) {
                // What ended before now is recorded already.
                let now = state.now_micros();
                let mut behind = false;
                for history in &state.shared {
                    behind |= history.catch_up(now);
                    if stop.load(Ordering::Acquire) {
                        return;
                    }
                }
                if !behind {
                    std::thread::sleep(PAUSE);
                }
            }
        };
        let thread = std::thread::Builder::new().name("order".to_owned());
        let thread = thread.spawn(check).context("cannot start a thread")?;
        Ok(Self {
            stopped,
            thread: Some(thread),
        })
    }
}

impl OrderThread {
    /// Stops the thread after a step. What it has not checked is checked at the end of the run.
    ///
    /// # Errors
    /// If it panicked.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.stopped.store(true, Ordering::Release);
        let ended = self.thread.take().map_or(Ok(()), JoinHandle::join);
        ended.map_err(|_| anyhow::anyhow!("checking the order of operations panicked"))
    }
}

impl Drop for OrderThread {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
    }
}
