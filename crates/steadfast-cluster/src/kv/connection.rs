//! One connection: bytes in, bytes out, faults in between.
//!
//! The loop reads the available bytes, executes every complete frame, and sends the
//! responses in parts: those of the first [`FIRST_PART`] frames, then of twice as many,
//! and so on. The client handles a part while the server works on the next. With one
//! part for all they would take turns, and with parts of equal size a long batch would
//! need many system calls.
//!
//! A full socket does not end a batch: the loop reads and writes at the same time, so a
//! client that sends much before it reads does not deadlock. It stops reading while more
//! than [`MAX_UNSENT`](super::unsent::MAX_UNSENT) bytes of responses are unsent: a slow reader slows itself down and
//! does not make the server grow. Delayed responses and pushed maps wait in the same way.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use steadfast_os::net::ResetOnClose;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::{DEFAULT_MAX_BODY, Decoded, Feature, Frame, FrameDecoder, FrameError, Magic};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::in_flight::{InFlight, Resume};
use super::session::{Flow, Session};
use super::stranger::{Login, Stranger};
use super::unsent::Unsent;
use crate::cluster::node::AcceptedConnection;

/// How many frames of a batch are executed before their responses are sent.
const FIRST_PART: usize = 8;
/// How many bytes are asked for at once.
const READ_BYTES: usize = 64 * 1024;
/// The largest frame before authentication: names of features, and messages of SASL.
const MAX_STRANGER_FRAME: u32 = 16 * 1024;
/// How many bytes are asked for at once before authentication.
const STRANGER_READ_BYTES: usize = 4 * 1024;
/// The most room that is made for a frame before its bytes have come: a header can promise much.
const MAX_PROMISED: usize = 1024 * 1024;
/// A buffer that a large frame has stretched beyond this is given back when it is empty.
const MAX_IDLE_BUFFER: usize = 1024 * 1024;
/// How long the last answers may take to leave when the connection closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves a connection until either side ends it. Dropping the future cuts it.
pub(crate) async fn serve<S>(mut stream: S, reset: ResetOnClose, connection: AcceptedConnection)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let next_map = next_map(connection.shared.subscribe());
    let login = Login::new(Stranger::enter(&connection.shared.strangers, connection.id));
    let in_flight = InFlight::new(
        connection.shared.max_concurrent_commands,
        connection.shared.version,
    );
    let mut link = Link {
        session: Session::new(connection.shared.clone(), connection.node, connection.id),
        login: Some(login),
        next_map,
        part: FIRST_PART,
        unsent: Unsent::new(&connection.shared),
        blocked: false,
        unflushed: false,
        inbound: BytesMut::with_capacity(STRANGER_READ_BYTES),
        outbound: BytesMut::new(),
        in_flight,
        map_is_due: false,
        silent: false,
        mute: false,
    };
    match link.run(&mut stream).await {
        CloseReason::Closed => {}
        CloseReason::Reset => {
            // Closing with this set sends a reset instead of an orderly end. The stream closes
            // when it is dropped, below.
            reset.set();
        }
        CloseReason::Malformed(error) => {
            tracing::warn!(peer = %connection.peer, connection = connection.id, %error,
                "malformed frame, connection closed");
        }
    }
}

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum CloseReason {
    /// Either side closed it.
    Closed,
    /// A fault resets it.
    Reset,
    /// The client sent a malformed frame.
    Malformed(FrameError),
}

/// What a connection waited for.
enum Event {
    /// Bytes were sent or received.
    Moved,
    /// A command that waited goes on.
    Resumed(Resume),
    /// A new map is published.
    Published(watch::Receiver<ConfigVersion>),
    /// The connection ends.
    Closed,
}

/// Resolves when a new map is published; to nothing when the cluster is gone.
type NextMap = BoxFuture<'static, Option<watch::Receiver<ConfigVersion>>>;

fn next_map(mut published: watch::Receiver<ConfigVersion>) -> NextMap {
    Box::pin(async move { published.changed().await.ok().map(|()| published) })
}

pub(super) struct Link {
    pub(super) session: Session,
    /// Present until the client has authenticated.
    login: Option<Login>,
    next_map: NextMap,
    /// How many frames are executed before responses are sent.
    part: usize,
    /// How much of `outbound` counts in the sum over all connections.
    unsent: Unsent,
    /// Whether frames or a map wait for room in `outbound`. Other connections may make it.
    blocked: bool,
    /// Whether the stream may hold bytes back, as TLS does, until it is flushed.
    unflushed: bool,
    inbound: BytesMut,
    pub(super) outbound: BytesMut,
    pub(super) in_flight: InFlight,
    /// Whether a new map is to be pushed to the client.
    map_is_due: bool,
    /// Whether a fault silenced this connection.
    pub(super) silent: bool,
    /// Whether a fault drops every answer of this connection.
    pub(super) mute: bool,
}

impl Link {
    async fn run<S>(&mut self, stream: &mut S) -> CloseReason
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let more = match self.take_frames() {
                Ok(more) => more,
                Err(end) => return self.end(end, stream).await,
            };
            if self.map_is_due {
                if self.unsent.has_room(self.outbound.len()) {
                    self.map_is_due = false;
                    self.session.push_config(&mut self.outbound);
                } else {
                    self.blocked = true;
                }
            }
            if self.mute {
                self.outbound.clear();
            }
            if self.session.user.is_some() {
                self.login = None;
            }
            match poll_fn(|cx| self.poll_event(stream, more, cx)).await {
                Event::Moved => {}
                Event::Resumed(resume) => {
                    if let Err(end) = self.resume(resume) {
                        return self.end(end, stream).await;
                    }
                }
                Event::Published(published) => {
                    if self.session.has_lost_its_bucket() {
                        return CloseReason::Closed;
                    }
                    self.next_map = next_map(published);
                    self.map_is_due = !self.silent;
                }
                Event::Closed => return CloseReason::Closed,
            }
        }
    }

    /// Sends responses, and waits for bytes and for commands that wait. With `more` frames to
    /// execute it waits for nothing.
    fn poll_event<S>(&mut self, stream: &mut S, more: bool, cx: &mut Context<'_>) -> Poll<Event>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if (!self.outbound.is_empty() || self.unflushed)
            && let Poll::Ready(Err(_)) = self.poll_send(stream, cx)
        {
            return Poll::Ready(Event::Closed);
        }
        // Also after a fault has dropped what was unsent.
        self.unsent.update(self.outbound.len());
        if more {
            // A client that does not read gets no further parts of this batch.
            self.part = match self.outbound.is_empty() {
                true => self.part.saturating_mul(2),
                false => usize::MAX,
            };
            return Poll::Ready(Event::Moved);
        }
        self.part = FIRST_PART;
        let has_room = self.unsent.has_room(self.outbound.len());
        if has_room && self.blocked {
            return Poll::Ready(Event::Moved);
        }
        if has_room && self.may_take() {
            match pin!(stream.read_buf(&mut self.inbound)).poll(cx) {
                Poll::Ready(Ok(0) | Err(_)) => {
                    if self.silent || self.mute {
                        self.session.shared.count_silent_closed();
                    }
                    return Poll::Ready(Event::Closed);
                }
                Poll::Ready(Ok(_)) => {
                    self.session.received = Instant::now();
                    self.session.now = self.session.shared.clock.at(self.session.received);
                    return Poll::Ready(Event::Moved);
                }
                Poll::Pending => {}
            }
        }
        if has_room && let Poll::Ready(Some(resume)) = self.in_flight.poll_next(cx) {
            return Poll::Ready(Event::Resumed(resume));
        }
        // A client that a fault keeps waiting is not slow.
        let is_slow = self.in_flight.is_empty() && !(self.silent || self.mute);
        if let Some(login) = &mut self.login
            && let Poll::Ready(why) = login.poll_over(is_slow, cx)
        {
            tracing::info!(connection = self.session.id, "{why}");
            return Poll::Ready(Event::Closed);
        }
        let published = ready!(self.next_map.as_mut().poll(cx));
        Poll::Ready(published.map_or(Event::Closed, Event::Published))
    }

    /// Sends responses as far as the client takes them.
    fn poll_send<S>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncWrite + Unpin,
    {
        while !self.outbound.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, &self.outbound))?;
            match written {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                all if all == self.outbound.len() => self.outbound.clear(),
                some => self.outbound.advance(some),
            }
            self.unflushed = true;
        }
        shrink(&mut self.outbound);
        ready!(Pin::new(stream).poll_flush(cx))?;
        self.unflushed = false;
        Poll::Ready(Ok(()))
    }

    /// Executes the frames that have come, as far as order and memory allow. Stops at the end of
    /// a part and returns true.
    fn take_frames(&mut self) -> Result<bool, CloseReason> {
        self.blocked = false;
        if self.silent {
            self.inbound.clear();
            return Ok(false);
        }
        if let Some(frame) = self.in_flight.release() {
            self.start(frame)?;
        }
        let mut left = self.part;
        loop {
            self.blocked = !self.unsent.has_room(self.outbound.len());
            if self.blocked || !self.may_take() {
                break;
            }
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let (largest, least) = match self.session.user {
                Some(_) => (DEFAULT_MAX_BODY, READ_BYTES),
                None => (MAX_STRANGER_FRAME, STRANGER_READ_BYTES),
            };
            let decoder = FrameDecoder::from_client().with_max_body(largest);
            match decoder.decode(&mut self.inbound) {
                Ok(Decoded::Frame(frame)) => self.take(frame)?,
                Ok(Decoded::NeedMore(bytes)) => {
                    shrink(&mut self.inbound);
                    self.inbound.reserve(bytes.clamp(least, MAX_PROMISED));
                    break;
                }
                Err(error) => return Err(CloseReason::Malformed(error)),
            }
            if self.silent {
                break;
            }
        }
        Ok(false)
    }

    /// Returns whether another command may be read.
    fn may_take(&self) -> bool {
        let features = &self.session.features;
        self.in_flight
            .has_room(features.contains(Feature::UnorderedExecution))
    }

    fn take(&mut self, frame: Frame) -> Result<(), CloseReason> {
        if frame.header().magic == Magic::ClientResponse {
            // The answer to a map that was pushed. There is nothing to learn from it.
            return Ok(());
        }
        match self.in_flight.admit(frame) {
            Some(frame) => self.start(frame),
            None => Ok(()),
        }
    }

    fn start(&mut self, frame: Frame) -> Result<(), CloseReason> {
        if self.session.shared.faults.rules.any()
            && let Some(fired) = self.fire(&frame)
        {
            return self.suffer(frame, fired);
        }
        self.execute(&frame)
    }

    pub(super) fn execute(&mut self, frame: &Frame) -> Result<(), CloseReason> {
        match self.session.execute(frame, &mut self.outbound) {
            Flow::Done => Ok(()),
            Flow::Close => Err(CloseReason::Closed),
            Flow::Wait(later) => {
                let send = async move { Resume::Send(later.await) };
                self.in_flight.add(frame, 0, send);
                Ok(())
            }
        }
    }

    fn resume(&mut self, resume: Resume) -> Result<(), CloseReason> {
        if self.silent {
            return Ok(());
        }
        match resume {
            Resume::Send(answer) => {
                self.outbound.extend_from_slice(&answer);
                Ok(())
            }
            Resume::Execute(frame) => {
                self.session.now = self.session.shared.clock.now();
                self.execute(&frame)
            }
        }
    }

    /// Sends what is already written before the connection closes, without waiting for long.
    async fn end<W: AsyncWrite + Unpin>(
        &mut self,
        end: CloseReason,
        writer: &mut W,
    ) -> CloseReason {
        let words = async {
            writer.write_all(&self.outbound).await?;
            writer.shutdown().await
        };
        if !matches!(end, CloseReason::Reset)
            && let Ok(Err(error)) = tokio::time::timeout(LAST_WORDS, words).await
        {
            tracing::debug!(%error, "the last answers did not leave");
        }
        end
    }
}

fn shrink(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > MAX_IDLE_BUFFER {
        *buffer = BytesMut::with_capacity(READ_BYTES);
    }
}

#[cfg(test)]
mod tests;
