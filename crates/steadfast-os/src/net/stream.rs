//! One end of a connection.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream as RealStream;

use crate::platform::{ResetSwitch, SimulatedSocket, current};

/// One end of a TCP connection. Dropping it closes the connection.
pub struct TcpStream(Stream);

enum Stream {
    Real(RealSocket),
    Simulated(Box<dyn SimulatedSocket>),
}

/// A socket of the operating system.
struct RealSocket {
    socket: RealStream,
    /// Whether its close is to be a reset.
    reset: Arc<AtomicBool>,
}

impl Drop for RealSocket {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // If the operating system refuses, the close is an orderly one.
            let _ = SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
        }
    }
}

/// Runs the same expression for either kind of socket, pinned.
macro_rules! either {
    ($stream:expr, $socket:ident => $body:expr) => {
        match &mut $stream.get_mut().0 {
            Stream::Real(RealSocket { socket, .. }) => {
                let $socket = Pin::new(socket);
                $body
            }
            Stream::Simulated(socket) => {
                let $socket = Pin::new(socket);
                $body
            }
        }
    };
}

impl TcpStream {
    /// Connects to a host name or address. A simulation knows addresses only.
    ///
    /// Cancel-safe: dropping the future closes the socket.
    ///
    /// # Errors
    /// If the name has no address, or no address accepts.
    pub async fn connect(host: &str, port: u16) -> io::Result<Self> {
        let Some(platform) = current() else {
            return RealStream::connect((host, port)).await.map(Self::from);
        };
        let address: IpAddr = host.parse().map_err(|_| {
            let problem = format!("a simulation has no name service: {host:?} is no address");
            io::Error::new(io::ErrorKind::NotFound, problem)
        })?;
        let socket = platform.connect(SocketAddr::new(address, port)).await?;
        Ok(Self::simulated(socket))
    }

    pub(super) fn simulated(socket: Box<dyn SimulatedSocket>) -> Self {
        Self(Stream::Simulated(socket))
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    /// If the operating system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Stream::Real(real) => real.socket.local_addr(),
            Stream::Simulated(socket) => Ok(socket.local_addr()),
        }
    }

    /// Returns the address of the other end, if the operating system knows it. A simulation
    /// does not.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Stream::Real(socket) => socket.socket.peer_addr().ok(),
            Stream::Simulated(_) => None,
        }
    }

    /// Sends small pieces at once. A simulation always does.
    ///
    /// # Errors
    /// If the operating system rejects it.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        match &self.0 {
            Stream::Real(real) => real.socket.set_nodelay(nodelay),
            Stream::Simulated(_) => Ok(()),
        }
    }

    /// Returns a handle that can still turn the close of this socket into a reset when the socket
    /// itself is inside of a TLS or HTTP connection. It holds no descriptor.
    pub fn reset_on_close(&self) -> ResetOnClose {
        ResetOnClose(match &self.0 {
            Stream::Real(real) => Handle::Real(real.reset.clone()),
            Stream::Simulated(socket) => Handle::Simulated(socket.reset_switch()),
        })
    }
}

impl From<RealStream> for TcpStream {
    fn from(socket: RealStream) -> Self {
        let reset = Arc::default();
        Self(Stream::Real(RealSocket { socket, reset }))
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_read(cx, buf))
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, socket => socket.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, socket => socket.poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, socket => socket.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Stream::Real(real) => real.socket.is_write_vectored(),
            Stream::Simulated(socket) => socket.is_write_vectored(),
        }
    }
}

/// Turns the close of a socket into a reset.
pub struct ResetOnClose(Handle);

enum Handle {
    Real(Arc<AtomicBool>),
    Simulated(Arc<dyn ResetSwitch>),
}

impl ResetOnClose {
    /// Makes the close of the socket a reset instead of an orderly end.
    pub fn set(&self) {
        match &self.0 {
            Handle::Real(reset) => reset.store(true, Ordering::Relaxed),
            Handle::Simulated(switch) => switch.reset_on_close(),
        }
    }
}
