//! Trait for what a simulation replaces, and the choice of the current one.

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncWrite};

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Platform>>> = const { RefCell::new(None) };
}

/// A simulated operating system.
pub trait Platform: Send + Sync {
    /// Opens a connection. Dropping the future abandons it.
    fn connect(&self, peer: SocketAddr) -> Connecting;

    /// Listens on an address; port 0 is any free port.
    ///
    /// # Errors
    /// If the port is taken.
    fn listen(&self, address: SocketAddr) -> io::Result<Box<dyn SimulatedListener>>;

    /// Returns the wall-clock time.
    fn wall_clock(&self) -> SystemTime;

    /// Fills the buffer with random bytes.
    fn fill_random(&self, bytes: &mut [u8]);
}

/// A connection that is being opened.
pub type Connecting =
    Pin<Box<dyn Future<Output = io::Result<Box<dyn SimulatedSocket>>> + Send + Sync>>;

/// One end of a simulated connection. Dropping it closes the connection.
pub trait SimulatedSocket: AsyncRead + AsyncWrite + Send + Sync + Unpin {
    /// Returns the address of this end.
    fn local_addr(&self) -> SocketAddr;

    /// Returns a switch that turns the end of the connection into a reset.
    fn reset_switch(&self) -> Arc<dyn ResetSwitch>;
}

/// Turns the end of a simulated connection into a reset.
pub trait ResetSwitch: Send + Sync {
    /// Makes the close of the socket a reset.
    fn reset_on_close(&self);
}

/// A simulated socket that accepts connections. Dropping it frees its port.
pub trait SimulatedListener: Send + Sync {
    /// Returns the address that it listens on.
    fn local_addr(&self) -> SocketAddr;

    /// Returns the next connection and the address of its client.
    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn SimulatedSocket>, SocketAddr)>>;
}

/// Makes this the platform of the thread until the guard is dropped.
pub fn enter(platform: Arc<dyn Platform>) -> Entered {
    let before = CURRENT.with(|current| current.borrow_mut().replace(platform));
    Entered {
        before,
        not_send: PhantomData,
    }
}

/// Keeps a platform the current one of its thread.
#[must_use = "dropping it leaves the platform"]
pub struct Entered {
    before: Option<Arc<dyn Platform>>,
    /// It belongs to its thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with(|current| *current.borrow_mut() = self.before.take());
    }
}

/// Returns whether this thread is simulated.
pub fn is_simulated() -> bool {
    CURRENT.with(|current| current.borrow().is_some())
}

/// Returns the simulated platform of this thread, if there is one.
pub(crate) fn current() -> Option<Arc<dyn Platform>> {
    CURRENT.with(|current| current.borrow().clone())
}
