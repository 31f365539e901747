//! The signals that ask a run to end.

use anyhow::Context;

/// SIGINT, as from Ctrl-C, and SIGTERM, as from whoever supervises the process. From when they
/// are listened to, they do not end the process by themselves.
pub(super) struct Interrupts {
    #[cfg(unix)]
    int: tokio::signal::unix::Signal,
    #[cfg(unix)]
    term: tokio::signal::unix::Signal,
}

/// The statuses that shells give to processes that ended by these signals.
const INT: u8 = 128 + 2;
#[cfg(unix)]
const TERM: u8 = 128 + 15;

impl Interrupts {
    /// Listens from now on.
    #[cfg(unix)]
    pub(super) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            int: listen(SignalKind::interrupt())?,
            term: listen(SignalKind::terminate())?,
        })
    }

    /// Listens from now on.
    #[cfg(not(unix))]
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// The next one, as the exit status that it stands for.
    ///
    /// Dropping the future loses no signal.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> anyhow::Result<u8> {
        tokio::select! {
            _ = self.int.recv() => Ok(INT),
            _ = self.term.recv() => Ok(TERM),
        }
    }

    /// The next one, as the exit status that it stands for.
    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> anyhow::Result<u8> {
        let heard = tokio::signal::ctrl_c().await;
        heard.context("cannot listen for an interruption")?;
        Ok(INT)
    }
}
