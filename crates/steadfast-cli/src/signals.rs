//! The signals that ask the command to end, as opposed to those that end it.

#[cfg(unix)]
use anyhow::Context;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

const INTERRUPTED: u8 = 128 + 2;
#[cfg(unix)]
const TERMINATED: u8 = 128 + 15;

/// An interrupt from the terminal, or what service managers and containers send.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

#[cfg(unix)]
impl Signals {
    /// From here on they no longer end the process.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Completes with the next of them, as the exit status that shells give to what it ended.
    /// Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }
}

/// An interrupt from the terminal.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// They end the process until one is waited for.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self)
    }

    /// Completes with the next of them, as the exit status that shells give to what it ended.
    pub(crate) async fn next(&mut self) -> u8 {
        if tokio::signal::ctrl_c().await.is_err() {
            // Then it is ended as by force, which needs nobody to listen.
            std::future::pending().await
        }
        INTERRUPTED
    }
}
