//! Signals that ask the command to stop: SIGINT and SIGTERM.

#[cfg(unix)]
use anyhow::Context;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) const INTERRUPTED: u8 = 128 + 2;
pub(crate) const TERMINATED: u8 = 128 + 15;

/// SIGINT from the terminal, SIGTERM from service managers and containers.
#[cfg(unix)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

#[cfg(unix)]
impl StopSignals {
    /// Starts listening: from now on the signals no longer kill the process.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal and returns the exit status that shells give it.
    ///
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

/// Ctrl-C in the terminal.
#[cfg(not(unix))]
pub(crate) struct StopSignals;

#[cfg(not(unix))]
impl StopSignals {
    /// Does nothing: Ctrl-C kills the process until [`StopSignals::next`] is called.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next signal and returns the exit status that shells give it.
    pub(crate) async fn next(&mut self) -> u8 {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without a handler Ctrl-C still kills the process.
            std::future::pending().await
        }
        INTERRUPTED
    }
}
