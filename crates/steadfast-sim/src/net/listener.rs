//! Sockets that accept connections.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use steadfast_os::{SimulatedListener, SimulatedSocket};

use super::Network;
use super::socket::Socket;

/// Connections that wait to be accepted.
#[derive(Default)]
pub(super) struct Backlog(Mutex<(VecDeque<Socket>, Option<Waker>)>);

impl Backlog {
    pub(super) fn push(&self, socket: Socket) {
        let (waiting, waker) = &mut *self.0.lock();
        waiting.push_back(socket);
        if let Some(waker) = waker.take() {
            waker.wake();
        }
    }
}

/// A socket that accepts connections.
pub(super) struct Listener {
    pub(super) network: Arc<Network>,
    pub(super) address: SocketAddr,
    pub(super) backlog: Arc<Backlog>,
}

impl SimulatedListener for Listener {
    fn local_addr(&self) -> SocketAddr {
        self.address
    }

    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(Box<dyn SimulatedSocket>, SocketAddr)>> {
        let (waiting, waker) = &mut *self.backlog.0.lock();
        match waiting.pop_front() {
            Some(socket) => {
                let peer = socket.peer();
                Poll::Ready(Ok((Box::new(socket), peer)))
            }
            None => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.network.unlisten(self.address);
    }
}
