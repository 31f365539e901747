//! Commands of a connection that wait, and those that wait for them.
//!
//! A server works on a limited number of commands of a connection at once and reads no more
//! meanwhile. With unordered execution others may overtake a command that waits, unless one of
//! the two is a barrier. Without it, one command is executed at a time.

use std::task::{Context, Poll};

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use steadfast_wire::frame_info::RequestFrameInfo;
use steadfast_wire::{Entries, Frame, HEADER_LEN};

use super::opcodes::CommandRules;
use crate::version::ServerVersion;

/// How many bytes the commands of one connection may hold on to before no more are read.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// The next step of a command that waited.
pub(super) enum Resume {
    /// It is executed now.
    Execute(Frame),
    /// Its answer goes out now.
    Send(BytesMut),
}

/// The commands of a connection that wait.
pub(super) struct InFlight {
    waiting: FuturesUnordered<BoxFuture<'static, (Cost, Resume)>>,
    /// How many commands may wait at once.
    limit: usize,
    version: ServerVersion,
    /// How many bytes they hold on to.
    bytes: usize,
    /// How many of them are barriers.
    barriers: usize,
    /// A barrier, which waits until all commands before it are done.
    behind: Option<Frame>,
}

/// The cost of a command while it waits.
#[derive(Clone, Copy)]
struct Cost {
    /// Its approximate memory.
    bytes: usize,
    barrier: bool,
}

impl InFlight {
    /// None yet, and at most this many at once.
    pub(super) fn new(limit: usize, version: ServerVersion) -> Self {
        Self {
            waiting: FuturesUnordered::new(),
            limit,
            version,
            bytes: 0,
            barriers: 0,
            behind: None,
        }
    }

    /// Returns whether no command waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether another command may be read.
    pub(super) fn has_room(&self, unordered: bool) -> bool {
        let may_overtake = unordered
            && self.barriers == 0
            && self.waiting.len() < self.limit
            && self.bytes < MAX_BYTES;
        self.behind.is_none() && (self.waiting.is_empty() || may_overtake)
    }

    /// Returns the command if it may start now. Otherwise it starts when those before it are done.
    pub(super) fn admit(&mut self, frame: Frame) -> Option<Frame> {
        if self.waiting.is_empty() || !is_barrier(&frame, self.version) {
            return Some(frame);
        }
        self.behind = Some(frame);
        None
    }

    /// Returns the barrier that may start now.
    pub(super) fn release(&mut self) -> Option<Frame> {
        match self.waiting.is_empty() {
            true => self.behind.take(),
            false => None,
        }
    }

    /// Adds a command that goes on later; an answer of this size exists already.
    pub(super) fn add(
        &mut self,
        frame: &Frame,
        answer: usize,
        later: impl Future<Output = Resume> + Send + 'static,
    ) {
        let cost = Cost {
            bytes: HEADER_LEN + frame.body().len() + answer,
            barrier: is_barrier(frame, self.version),
        };
        self.bytes += cost.bytes;
        self.barriers += usize::from(cost.barrier);
        self.waiting
            .push(Box::pin(async move { (cost, later.await) }));
    }

    /// Waits for the first command that goes on; resolves to nothing if none waits.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Resume>> {
        self.waiting.poll_next_unpin(cx).map(|next| {
            let (cost, resume) = next?;
            self.bytes -= cost.bytes;
            self.barriers -= usize::from(cost.barrier);
            Some(resume)
        })
    }
}

/// Returns whether a command must not be reordered, in either direction.
fn is_barrier(frame: &Frame, version: ServerVersion) -> bool {
    !CommandRules::of(frame.opcode(), version).reordered || asks_for_order(frame)
}

/// Returns whether the client asks for a barrier.
fn asks_for_order(frame: &Frame) -> bool {
    !frame.framing_extras().is_empty()
        && Entries::<RequestFrameInfo<'_>>::new(frame.framing_extras())
            .any(|info| matches!(info, Ok(RequestFrameInfo::Barrier)))
}
