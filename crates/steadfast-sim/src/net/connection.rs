//! State of a connection: a queue of bytes in each direction, and its end.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::task::Waker;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::conditions::Direction;

/// How many bytes a direction holds before the writer must wait.
pub(super) const BUFFER: usize = 256 * 1024;

/// A connection to a node.
pub(crate) struct Connection {
    pub(super) id: u64,
    /// The port of the node, by which conditions are found.
    pub(super) port: u16,
    pub(super) node: SocketAddr,
    pub(super) client: SocketAddr,
    pub(super) ways: Mutex<Ways>,
}

/// Both directions.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) to_node: Way,
    pub(super) from_node: Way,
    /// Both ends see a reset.
    pub(super) reset: bool,
    /// The close of the node's end is a reset.
    pub(super) reset_on_close: bool,
}

/// One direction.
#[derive(Default)]
pub(super) struct Way {
    /// Pieces with the time of their arrival.
    pub(super) queue: VecDeque<(Instant, Bytes)>,
    pub(super) queued: usize,
    /// All bytes that were written.
    pub(super) sent: u64,
    /// The connection is reset after this number of bytes.
    pub(super) cut_after: Option<u64>,
    /// Nothing arrives any more, for ever.
    pub(super) lost: bool,
    /// When the line is free for the next piece.
    pub(super) line_free: Option<Instant>,
    /// When the last piece arrives.
    pub(super) last_arrival: Option<Instant>,
    /// When the receiver reads again.
    pub(super) reader_free: Option<Instant>,
    /// When the end of the stream arrives, after the sender has closed.
    pub(super) end: Option<Instant>,
    /// The receiver is gone.
    pub(super) unread: bool,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

impl Ways {
    pub(super) fn way(&mut self, direction: Direction) -> &mut Way {
        match direction {
            Direction::ToNode => &mut self.to_node,
            Direction::FromNode => &mut self.from_node,
        }
    }

    pub(super) fn reset(&mut self) {
        self.reset = true;
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        for way in [&mut self.to_node, &mut self.from_node] {
            way.wake();
        }
    }
}

impl Way {
    pub(super) fn wake(&mut self) {
        let wakers = [self.reader.take(), self.writer.take()];
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

impl Connection {
    pub(super) fn new(id: u64, node: SocketAddr, client: SocketAddr) -> Self {
        Self {
            id,
            port: node.port(),
            node,
            client,
            ways: Mutex::default(),
        }
    }

    pub(super) fn wake(&self) {
        self.ways.lock().wake();
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(&self) {
        self.ways.lock().reset();
    }

    /// Ends the connection with a reset after this number of bytes more in this direction.
    pub(crate) fn cut_after(&self, direction: Direction, bytes: u64) {
        let mut ways = self.ways.lock();
        let way = ways.way(direction);
        way.cut_after = Some(way.sent + bytes);
    }

    /// Loses whatever is sent in this direction from now on. Neither end is told.
    pub(crate) fn lose(&self, direction: Direction) {
        self.ways.lock().way(direction).lost = true;
    }
}
