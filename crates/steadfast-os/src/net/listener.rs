//! Sockets that accept connections, and ports that are kept for one.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener as RealListener, TcpSocket};

use super::TcpStream;
use crate::platform::{SimulatedListener, current};

/// A socket that accepts connections. Dropping it frees its port.
pub struct TcpListener(Listener);

enum Listener {
    Real(RealListener),
    Simulated(Box<dyn SimulatedListener>),
}

impl TcpListener {
    /// Listens on an address; port 0 is any free port.
    ///
    /// Dropping the future leaves the port free.
    ///
    /// # Errors
    /// If the port is taken, or the address is not of this machine.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        match current() {
            Some(platform) => platform.listen(address).map(Self::simulated),
            None => RealListener::bind(address).await.map(Self::real),
        }
    }

    fn real(listener: RealListener) -> Self {
        Self(Listener::Real(listener))
    }

    fn simulated(listener: Box<dyn SimulatedListener>) -> Self {
        Self(Listener::Simulated(listener))
    }

    /// Returns the address that it listens on.
    ///
    /// # Errors
    /// If the operating system does not know it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listener::Real(listener) => listener.local_addr(),
            Listener::Simulated(listener) => Ok(listener.local_addr()),
        }
    }

    /// Returns the next connection and the address of its client. Cancel-safe.
    ///
    /// # Errors
    /// If the operating system cannot accept it.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.0 {
            Listener::Real(listener) => {
                let (socket, peer) = listener.accept().await?;
                Ok((socket.into(), peer))
            }
            Listener::Simulated(listener) => {
                let accepted = std::future::poll_fn(|cx| listener.poll_accept(cx)).await;
                accepted.map(|(socket, peer)| (TcpStream::simulated(socket), peer))
            }
        }
    }
}

/// A port without a listener, which nobody else can get. Connections to it are refused.
#[derive(Debug)]
pub struct ReservedPort(Reserved);

#[derive(Debug)]
enum Reserved {
    Real(TcpSocket),
    /// A simulation never gives a port to somebody else.
    Simulated(SocketAddr),
}

impl ReservedPort {
    /// Takes a port without listening on it, also if connections to it were just closed.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        if current().is_some() {
            return Ok(Self(Reserved::Simulated(address)));
        }
        let socket = match address.ip() {
            IpAddr::V4(_) => TcpSocket::new_v4(),
            IpAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        // Connections that were cut a moment ago still have the port.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok(Self(Reserved::Real(socket)))
    }

    /// Starts to listen. At most `backlog` connections wait to be accepted.
    ///
    /// # Errors
    /// If the operating system rejects it, or the thread is no longer simulated.
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        match self.0 {
            Reserved::Real(socket) => socket.listen(backlog).map(TcpListener::real),
            Reserved::Simulated(address) => match current() {
                Some(platform) => platform.listen(address).map(TcpListener::simulated),
                None => Err(io::ErrorKind::NotConnected.into()),
            },
        }
    }
}
