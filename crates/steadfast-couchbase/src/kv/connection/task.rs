//! The task of a connection: reads, writes, keeps deadlines and notices silence.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::BytesMut;
use steadfast_wire::{Decoded, Frame, FrameDecoder, Magic, Opcode};
use tokio::io::AsyncWrite;
use tokio::time::Sleep;
use tokio_util::io::poll_read_buf;

use super::silence::{ConnectionProgress, SilenceWatch, TimerAction};
use super::state::{Delivered, Expired, LATEST_RESPONSE};
use super::{CloseReason, Connection, Io};
use crate::world::now;

/// The size of a read.
const READ: usize = 64 << 10;
/// Empty buffers larger than this are freed.
const KEPT: usize = 1 << 20;
/// From this many bytes on, waiting for more frames saves nothing.
const ENOUGH: usize = 32 << 10;

/// Handles frames that no operation waits for.
pub(crate) trait Events: Send + Sync + 'static {
    /// Handles a request of the server.
    fn server_request(&self, connection: &Arc<Connection>, frame: Frame);

    /// Handles a response whose caller was dropped or timed out.
    fn orphan(&self, connection: &Arc<Connection>, frame: Frame);
}

/// The task that owns a connection.
pub(crate) struct Task<E: Events> {
    io: Io,
    connection: Arc<Connection>,
    events: E,
    decoder: FrameDecoder,
    received: BytesMut,
    writing: Writing,
    silence: SilenceWatch,
    /// The end of draining, once that has begun.
    drained_at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    armed_for: Option<Instant>,
    frames: Vec<Frame>,
    wakers: Vec<Waker>,
}

/// The frames that are being handed to the socket.
#[derive(Default)]
struct Writing {
    buffer: BytesMut,
    done: usize,
    /// The position in the stream of the buffer's first byte.
    start: u64,
    flushed: bool,
    /// Set after other tasks had the chance to add frames.
    yielded: bool,
}

impl<E: Events> Task<E> {
    /// `received` has the bytes that were read beyond the bootstrap.
    pub(crate) fn new(io: Io, connection: Arc<Connection>, received: BytesMut, events: E) -> Self {
        Self {
            io,
            silence: SilenceWatch::new(*connection.limits()),
            drained_at: None,
            connection,
            events,
            decoder: FrameDecoder::from_server(),
            received,
            writing: Writing {
                flushed: true,
                ..Writing::default()
            },
            timer: None,
            armed_for: None,
            frames: Vec::new(),
            wakers: Vec::new(),
        }
    }

    /// Runs until the connection is closed, then ends all its operations.
    ///
    /// Cancel-safe: dropping the future closes the connection and ends its operations.
    pub(crate) async fn run(mut self) -> CloseReason {
        // Frames received with the last response of the bootstrap.
        let closing = match self.deliver() {
            Ok(()) => poll_fn(|cx| self.poll(cx)).await,
            Err(closing) => closing,
        };
        self.connection.close(closing.clone());
        closing
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        if let Poll::Ready(closing) = self.poll_read(cx) {
            return Poll::Ready(closing);
        }
        let all_sent = match self.poll_write(cx) {
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => return Poll::Ready(lost(&error)),
            Poll::Pending => false,
        };
        self.wakers.drain(..).for_each(Waker::wake);
        let blocked = !all_sent && !self.writing.yielded;
        if let Poll::Ready(closing) = self.poll_timer(cx, blocked) {
            return Poll::Ready(closing);
        }
        let mut state = self.connection.state.lock();
        if let Some(closing) = &state.closing {
            return Poll::Ready(closing.clone());
        }
        if let Some(why) = &state.draining {
            if !state.awaits_responses() {
                return Poll::Ready(why.clone());
            }
            if self.drained_at.is_none() {
                // The timer is not set to it yet.
                self.drained_at = Some(now() + self.connection.limits().drain);
                cx.waker().wake_by_ref();
            }
        }
        // Frames added since the buffer was checked did not wake the task, because
        // it was not asleep yet.
        if all_sent && state.has_unsent() {
            cx.waker().wake_by_ref();
        }
        state.sleep(cx.waker());
        Poll::Pending
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        loop {
            match ready!(self.fill(cx)) {
                Ok(0) => {
                    let text = "the server closed the connection".to_owned();
                    return Poll::Ready(CloseReason::Lost(text));
                }
                Ok(_) => {
                    self.silence.heard();
                    if let Err(closing) = self.deliver() {
                        return Poll::Ready(closing);
                    }
                }
                Err(error) => return Poll::Ready(lost(&error)),
            }
        }
    }

    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.received.capacity() - self.received.len() < READ / 2 {
            self.received.reserve(READ);
        }
        poll_read_buf(Pin::new(&mut self.io), cx, &mut self.received).map(at_end)
    }

    /// Delivers the received frames.
    fn deliver(&mut self) -> Result<(), CloseReason> {
        let mut broken = None;
        loop {
            match self.decoder.decode(&mut self.received) {
                Ok(Decoded::Frame(frame)) => self.frames.push(frame),
                Ok(Decoded::NeedMore(missing)) => {
                    if missing > READ {
                        self.received.reserve(missing);
                    }
                    break;
                }
                // The frames before it are valid.
                Err(error) => {
                    broken = Some(format!("invalid frame: {error}"));
                    break;
                }
            }
        }
        if self.frames.is_empty() {
            return broken.map_or(Ok(()), |text| Err(CloseReason::Invalid(text)));
        }
        let mut aside = Vec::new();
        let received_at = now();
        let mut state = self.connection.state.lock();
        state.received_at = received_at;
        for frame in self.frames.drain(..) {
            match frame.header().magic {
                Magic::Response | Magic::FlexibleResponse => {
                    let (opaque, opcode) = (frame.opaque(), frame.header().opcode);
                    match state.deliver(frame) {
                        Delivered::ToCaller(Some(waker)) => self.wakers.push(waker),
                        Delivered::ToCaller(None) => {}
                        Delivered::Orphaned(frame) => aside.push(frame),
                        Delivered::Unknown => {
                            broken.get_or_insert_with(|| {
                                let opcode = Opcode::from_code(opcode);
                                format!(
                                    "a response to {opcode} with the unknown opaque {opaque:#x}"
                                )
                            });
                        }
                    }
                }
                Magic::ServerRequest => aside.push(frame),
                Magic::Request | Magic::FlexibleRequest | Magic::ClientResponse => {
                    // The decoder rejects these from a server.
                }
            }
        }
        // Late responses have freed slots.
        state.grant(&mut self.wakers);
        drop(state);
        self.wakers.drain(..).for_each(Waker::wake);
        for frame in aside {
            match frame.header().magic {
                Magic::ServerRequest => self.events.server_request(&self.connection, frame),
                _ => self.events.orphan(&self.connection, frame),
            }
        }
        broken.map_or(Ok(()), |text| Err(CloseReason::Invalid(text)))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let writing = &mut self.writing;
            if writing.done == writing.buffer.len() {
                if !writing.flushed {
                    ready!(Pin::new(&mut self.io).poll_flush(cx))?;
                    writing.flushed = true;
                }
                let mut state = self.connection.state.lock();
                if !writing.buffer.is_empty() {
                    state.all_handed();
                    state.grant(&mut self.wakers);
                    writing.buffer.clear();
                    writing.done = 0;
                    if writing.buffer.capacity() > KEPT {
                        writing.buffer = BytesMut::new();
                    }
                }
                if !state.has_unsent() {
                    return Poll::Ready(Ok(()));
                }
                // Other ready tasks add their frames first, so that one system call
                // carries them all. A single operation does not wait: it would pay
                // for waking another thread.
                let has_company = state.in_flight() > 1 && state.unsent_len() < ENOUGH;
                if !writing.yielded && has_company {
                    writing.yielded = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                writing.yielded = false;
                writing.start = state.take_out(&mut writing.buffer);
            }
            ready!(self.write_piece(cx))?;
        }
    }

    fn write_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writing = &mut self.writing;
        let position = writing.start + writing.done as u64;
        let end = writing.start + writing.buffer.len() as u64;
        let (skip, len) = self.connection.state.lock().begin_piece(position, end);
        writing.done += skip as usize;
        let piece = &writing.buffer[writing.done..writing.done + len as usize];
        let written = if piece.is_empty() {
            Poll::Ready(Ok(0))
        } else {
            Pin::new(&mut self.io).poll_write(cx, piece)
        };
        match &written {
            Poll::Ready(Ok(written)) => {
                writing.done += written;
                writing.flushed = false;
            }
            // A write by TLS fills the socket more than once. If that fails, an earlier
            // part may have left. A write to a socket that fails took nothing.
            Poll::Ready(Err(_)) if matches!(self.io, Io::Right(_)) => {
                writing.done += piece.len();
            }
            Poll::Ready(Err(_)) | Poll::Pending => {}
        }
        let handed = writing.start + writing.done as u64;
        self.connection.state.lock().set_handed(handed);
        match ready!(written) {
            Ok(0) if len > 0 => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Ok(_) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Ends late operations, probes a silent peer and limits draining. `blocked` says
    /// that the socket accepts no more bytes for now.
    fn poll_timer(&mut self, cx: &mut Context<'_>, blocked: bool) -> Poll<CloseReason> {
        self.silence.begin(now);
        loop {
            let earliest = self.connection.state.lock().earliest();
            let times = [earliest, self.silence.next(), self.drained_at];
            let Some(next) = times.into_iter().flatten().min() else {
                return Poll::Pending;
            };
            if self.armed_for != Some(next) {
                self.armed_for = Some(next);
                match &mut self.timer {
                    Some(timer) => timer.as_mut().reset(next.into()),
                    none => *none = Some(Box::pin(tokio::time::sleep_until(next.into()))),
                }
            }
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
            }
            self.armed_for = None;
            if let Some(closing) = self.handle_timer(now(), blocked) {
                return Poll::Ready(closing);
            }
        }
    }

    fn handle_timer(&mut self, now: Instant, blocked: bool) -> Option<CloseReason> {
        let mut state = self.connection.state.lock();
        let Expired { overdue, stuck } = match state.earliest() {
            Some(earliest) if earliest <= now => state.expire(now, &mut self.wakers),
            Some(_) | None => Expired::default(),
        };
        let concurrent = self.connection.concurrent_commands();
        let action = self.silence.judge(ConnectionProgress {
            now,
            overdue,
            waiting: state.in_flight() > 0,
            handed: state.handed(),
            blocked,
            held_back_until: state.held_back_until(concurrent),
            on_their_way: state.on_their_way(),
            latest_deadline: state.latest_deadline(),
        });
        if action == TimerAction::Probe {
            state.push_probe(self.connection.features);
        }
        drop(state);
        self.wakers.drain(..).for_each(Waker::wake);
        if stuck {
            let why = format!("a response did not come within {LATEST_RESPONSE:?}");
            self.connection.drain(CloseReason::Replaced(why));
        }
        if action == TimerAction::Silent {
            return Some(CloseReason::Silent);
        }
        // Operations that still wait get no response.
        let is_over = self.drained_at.is_some_and(|at| at <= now);
        is_over.then(|| {
            let why = self.connection.state.lock().draining.clone();
            why.unwrap_or(CloseReason::NotNeeded)
        })
    }
}

impl<E: Events> Drop for Task<E> {
    /// Ends all operations with the task, also after a panic or the end of the
    /// runtime.
    fn drop(&mut self) {
        self.connection.state.lock().end_all(&mut self.wakers);
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// Returns no bytes at the end of the stream. With TLS, a peer may end it without an alert.
pub(crate) fn at_end(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

fn lost(error: &io::Error) -> CloseReason {
    CloseReason::Lost(error.to_string())
}
