//! One end of a connection.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use steadfast_os::{ResetSwitch, SimulatedSocket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Network;
use super::conditions::{Direction, time_at};
use super::connection::{BUFFER, Connection};

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Node,
}

impl End {
    const fn writes(self) -> Direction {
        match self {
            Self::Client => Direction::ToNode,
            Self::Node => Direction::FromNode,
        }
    }
}

/// One end of a connection. Dropping it closes the connection.
pub(super) struct Socket {
    network: Arc<Network>,
    connection: Arc<Connection>,
    end: End,
    /// Wakes the reader when a piece arrives.
    arrival: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    pub(super) fn new(network: Arc<Network>, connection: Arc<Connection>, end: End) -> Self {
        Self {
            network,
            connection,
            end,
            arrival: None,
        }
    }

    pub(super) fn peer(&self) -> SocketAddr {
        match self.end {
            End::Client => self.connection.node,
            End::Node => self.connection.client,
        }
    }

    /// Waits until a moment, and wakes the reader then.
    fn poll_arrival(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = match &mut self.arrival {
            Some(sleep) => {
                sleep.as_mut().reset(at);
                sleep
            }
            none => none.insert(Box::pin(sleep_until(at))),
        };
        sleep.as_mut().poll(cx)
    }

    /// Closes the direction that this end writes.
    fn close(&self) {
        let conditions = self
            .network
            .conditions(self.connection.port, self.end.writes());
        let arrives = Instant::now() + self.network.travel_time(&conditions);
        let mut ways = self.connection.ways.lock();
        let way = ways.way(self.end.writes());
        if way.end.is_none() {
            way.end = Some(way.last_arrival.map_or(arrives, |last| last.max(arrives)));
            way.wake();
        }
    }
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let direction = this.end.writes().opposite();
        let conditions = this.network.conditions(this.connection.port, direction);
        let connection = this.connection.clone();
        loop {
            let mut ways = connection.ways.lock();
            if ways.reset {
                return Poll::Ready(Err(reset()));
            }
            let way = ways.way(direction);
            way.reader = Some(cx.waker().clone());
            if conditions.held || way.lost {
                return Poll::Pending;
            }
            let (arrives, is_end) = match (way.queue.front(), way.end) {
                (Some((arrives, _)), _) => (*arrives, false),
                (None, Some(end)) => (end, true),
                (None, None) => return Poll::Pending,
            };
            let free = way.reader_free.map_or(arrives, |free| free.max(arrives));
            let now = Instant::now();
            if free > now {
                drop(ways);
                match this.poll_arrival(free, cx) {
                    Poll::Ready(()) => continue,
                    Poll::Pending => return Poll::Pending,
                }
            }
            if is_end {
                return Poll::Ready(Ok(()));
            }
            while let Some((arrives, piece)) = way.queue.front_mut() {
                if *arrives > now || buf.remaining() == 0 {
                    break;
                }
                let taken = piece.len().min(buf.remaining());
                buf.put_slice(&piece[..taken]);
                piece.advance(taken);
                way.queued -= taken;
                if piece.is_empty() {
                    way.queue.pop_front();
                }
                if conditions.read_rate.is_some() {
                    way.reader_free = Some(now + time_at(conditions.read_rate, taken));
                    break;
                }
            }
            if let Some(writer) = way.writer.take() {
                writer.wake();
            }
            return Poll::Ready(Ok(()));
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let direction = self.end.writes();
        let conditions = self.network.conditions(self.connection.port, direction);
        let travel = self.network.travel_time(&conditions);
        let mut ways = self.connection.ways.lock();
        if ways.reset {
            return Poll::Ready(Err(reset()));
        }
        let way = ways.way(direction);
        if way.end.is_some() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = BUFFER - way.queued.min(BUFFER);
        if room == 0 {
            way.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let bytes = &buf[..buf.len().min(room)];
        let left = way.cut_after.map(|cut| cut.saturating_sub(way.sent));
        let is_cut = left.is_some_and(|left| bytes.len() as u64 >= left);
        self.network.record(self.connection.id, direction, bytes);
        if way.unread {
            // The receiver's machine answers with a reset.
            ways.reset();
            return Poll::Ready(Ok(bytes.len()));
        }
        let arriving = match left {
            Some(left) if is_cut => &bytes[..left as usize],
            _ => bytes,
        };
        let now = Instant::now();
        let begins = way.line_free.map_or(now, |free| free.max(now));
        let free = begins + time_at(conditions.bandwidth, arriving.len());
        let arrives = free + travel;
        let arrives = way.last_arrival.map_or(arrives, |last| last.max(arrives));
        way.line_free = Some(free);
        way.last_arrival = Some(arrives);
        way.sent += bytes.len() as u64;
        way.queued += arriving.len();
        if !arriving.is_empty() {
            let piece = Bytes::copy_from_slice(arriving);
            way.queue.push_back((arrives, piece));
        }
        if let Some(reader) = way.reader.take() {
            reader.wake();
        }
        if is_cut {
            // What is on its way still arrives, and then the end.
            way.cut_after = None;
            way.end = Some(arrives);
            ways.way(direction.opposite()).end = Some(arrives);
            ways.way(direction.opposite()).unread = true;
            ways.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
        let mut ways = self.connection.ways.lock();
        let reads = self.end.writes().opposite();
        ways.way(reads).unread = true;
        let unread = !ways.way(reads).queue.is_empty();
        let asked = self.end == End::Node && ways.reset_on_close;
        if asked || unread {
            ways.reset();
        }
        let gone = ways.way(self.end.writes()).unread;
        drop(ways);
        if gone {
            self.network.closed(&self.connection);
        }
    }
}

impl SimulatedSocket for Socket {
    fn local_addr(&self) -> SocketAddr {
        match self.end {
            End::Client => self.connection.client,
            End::Node => self.connection.node,
        }
    }

    fn reset_switch(&self) -> Arc<dyn ResetSwitch> {
        Arc::new(Switch(self.connection.clone()))
    }
}

/// Turns the close of the node's end into a reset.
struct Switch(Arc<Connection>);

impl ResetSwitch for Switch {
    fn reset_on_close(&self) {
        self.0.ways.lock().reset_on_close = true;
    }
}
