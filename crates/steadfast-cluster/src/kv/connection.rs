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
//! than [`MAX_UNSENT`] bytes of responses are unsent: a slow reader slows itself down and
//! does not make the server grow. Delayed responses and pushed maps wait in the same way.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use futures_util::future::BoxFuture;
use steadfast_os::net::ResetOnClose;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::{
    Datatype, Decoded, DocumentKey, Feature, Frame, FrameDecoder, FrameError, HEADER_LEN, Magic,
    Status,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::in_flight::{InFlight, Resume};
use super::response::KvResponse;
use super::session::{Flow, Session};
use super::stranger::Stranger;
use crate::Service;
use crate::cluster::node::AcceptedConnection;
use crate::fault::{Effect, FaultAnswer, FiredFault, Garble, IncomingRequest};

/// How many frames of a batch are executed before their responses are sent.
const FIRST_PART: usize = 8;
/// How many bytes are asked for at once.
const READ_BYTES: usize = 64 * 1024;
/// How many bytes of answers may wait for a slow reader before its requests are not read.
const MAX_UNSENT: usize = 4 * 1024 * 1024;
/// How many bytes of answers all connections together may have waiting. Beyond it, each keeps
/// what fits [`MIN_UNSENT`].
const MAX_UNSENT_TOGETHER: usize = 256 * 1024 * 1024;
const MIN_UNSENT: usize = 64 * 1024;
/// The largest frame before authentication: names of features, and messages of SASL.
const MAX_STRANGER_FRAME: u32 = 16 * 1024;
/// How many bytes are asked for at once before authentication.
const STRANGER_READ_BYTES: usize = 4 * 1024;
/// How long a client may take to authenticate.
const LOGIN_TIME: Duration = Duration::from_secs(30);
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
    let session = Session::new(connection.shared, connection.node, connection.id);
    let mut link = Link {
        session,
        login: Some(login),
        next_map,
        part: FIRST_PART,
        unsent: 0,
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
enum CloseReason {
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

/// The limits of a client that has not authenticated.
struct Login {
    /// Counts the client among the strangers.
    _stranger: Stranger,
    displaced: BoxFuture<'static, ()>,
    timeout: Pin<Box<Sleep>>,
}

impl Login {
    fn new(stranger: Stranger) -> Self {
        Self {
            displaced: Box::pin(stranger.displaced_owned()),
            timeout: Box::pin(tokio::time::sleep(LOGIN_TIME)),
            _stranger: stranger,
        }
    }
}

struct Link {
    session: Session,
    /// Present until the client has authenticated.
    login: Option<Login>,
    next_map: NextMap,
    /// How many frames are executed before responses are sent.
    part: usize,
    /// How much of `outbound` counts in the sum over all connections.
    unsent: usize,
    /// Whether frames or a map wait for room in `outbound`. Other connections may make it.
    blocked: bool,
    /// Whether the stream may hold bytes back, as TLS does, until it is flushed.
    unflushed: bool,
    inbound: BytesMut,
    outbound: BytesMut,
    in_flight: InFlight,
    /// Whether a new map is to be pushed to the client.
    map_is_due: bool,
    /// Whether a fault silenced this connection.
    silent: bool,
    /// Whether a fault drops every answer of this connection.
    mute: bool,
}

impl Link {
    async fn run<S>(&mut self, stream: &mut S) -> CloseReason
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let more = match self.take_frames() {
                Ok(more) => more,
                Err(end) => {
                    if !matches!(end, CloseReason::Reset) {
                        self.say_last_words(stream).await;
                    }
                    return end;
                }
            };
            if self.map_is_due {
                if self.has_room() {
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
                        self.say_last_words(stream).await;
                        return end;
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
        self.account();
        if more {
            // A client that does not read gets no further parts of this batch.
            self.part = match self.outbound.is_empty() {
                true => self.part.saturating_mul(2),
                false => usize::MAX,
            };
            return Poll::Ready(Event::Moved);
        }
        self.part = FIRST_PART;
        let has_room = self.has_room();
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
        if let Some(login) = &mut self.login {
            if login.displaced.as_mut().poll(cx).is_ready() {
                tracing::info!(
                    connection = self.session.id,
                    "too many clients without a login"
                );
                return Poll::Ready(Event::Closed);
            }
            // A client that a fault keeps waiting is not slow.
            let is_slow = self.in_flight.is_empty() && !(self.silent || self.mute);
            if is_slow && login.timeout.as_mut().poll(cx).is_ready() {
                tracing::info!(connection = self.session.id, "the client did not log in");
                return Poll::Ready(Event::Closed);
            }
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
            self.blocked = !self.has_room();
            if self.blocked || !self.may_take() {
                break;
            }
            if left == 0 {
                return Ok(true);
            }
            left -= 1;
            let decoder = match self.session.user {
                Some(_) => FrameDecoder::from_client(),
                None => FrameDecoder::from_client().with_max_body(MAX_STRANGER_FRAME),
            };
            match decoder.decode(&mut self.inbound) {
                Ok(Decoded::Frame(frame)) => self.take(frame)?,
                Ok(Decoded::NeedMore(bytes)) => {
                    shrink(&mut self.inbound);
                    let least = match self.session.user {
                        Some(_) => READ_BYTES,
                        None => STRANGER_READ_BYTES,
                    };
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

    /// Returns whether the outbound buffer has room.
    fn has_room(&self) -> bool {
        let unsent = self.outbound.len();
        unsent < MIN_UNSENT
            || (unsent < MAX_UNSENT
                && self.session.shared.unsent.load(Ordering::Relaxed) < MAX_UNSENT_TOGETHER)
    }

    /// Brings the sum over all connections up to date.
    fn account(&mut self) {
        let (before, now) = (self.unsent, self.outbound.len());
        if before != now {
            let sum = &self.session.shared.unsent;
            sum.fetch_add(now, Ordering::Relaxed);
            sum.fetch_sub(before, Ordering::Relaxed);
            self.unsent = now;
        }
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
            && let Some(decision) = self.decide(&frame)
        {
            return self.judge(frame, decision);
        }
        self.execute(&frame)
    }

    fn execute(&mut self, frame: &Frame) -> Result<(), CloseReason> {
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

    #[cold]
    fn decide(&self, frame: &Frame) -> Option<FiredFault> {
        let rules = self.session.rules(frame.opcode());
        let collections =
            self.session.features.contains(Feature::Collections) && rules.document_key;
        let key = DocumentKey::decode(frame.key(), collections).map_or(frame.key(), |key| key.id);
        self.session.shared.faults.fire(&IncomingRequest {
            node: self.session.node.id,
            service: Service::KeyValue,
            opcode: Some(frame.opcode()),
            key,
            bucket: self.session.bucket.as_ref().map(|bucket| &*bucket.name),
        })
    }

    /// Does to a command what a fault says.
    #[cold]
    fn judge(&mut self, frame: Frame, fired: FiredFault) -> Result<(), CloseReason> {
        match fired.effect {
            Effect::Pass => self.execute(&frame),
            Effect::Delay(by) => {
                self.execute_after(frame, tokio::time::sleep(by));
                Ok(())
            }
            Effect::DelayAnswer(by) => {
                let (answer, flow) = self.execute_aside(&frame);
                self.in_flight.add(&frame, answer.len(), async move {
                    tokio::time::sleep(by).await;
                    Resume::Send(match flow {
                        Flow::Wait(later) => later.await,
                        Flow::Done | Flow::Close => answer,
                    })
                });
                Ok(())
            }
            Effect::Answer(answer) => {
                self.answer(&frame, &answer);
                Ok(())
            }
            Effect::Hold => {
                self.execute_after(frame, fired.removed.cancelled_owned());
                Ok(())
            }
            Effect::CutBeforeReading => Err(CloseReason::Reset),
            Effect::CutBeforeApplying => Err(CloseReason::Closed),
            Effect::CutAfterApplying => {
                self.execute_aside(&frame);
                Err(CloseReason::Closed)
            }
            Effect::CutMidResponse => {
                let (answer, _) = self.execute_aside(&frame);
                self.outbound.extend_from_slice(&answer[..answer.len() / 2]);
                Err(CloseReason::Closed)
            }
            Effect::Garble(garble) => {
                let (mut answer, _) = self.execute_aside(&frame);
                damage(&mut answer, garble);
                self.outbound.extend_from_slice(&answer);
                Ok(())
            }
            Effect::Silent => {
                self.silent = true;
                Ok(())
            }
            Effect::Mute => {
                self.mute = true;
                self.execute(&frame)
            }
        }
    }

    /// Executes a command when something has happened.
    fn execute_after(&mut self, frame: Frame, after: impl Future<Output = ()> + Send + 'static) {
        self.in_flight.add(&frame.clone(), 0, async move {
            after.await;
            Resume::Execute(frame)
        });
    }

    fn execute_aside(&mut self, frame: &Frame) -> (BytesMut, Flow) {
        let mut answer = BytesMut::new();
        let flow = self.session.execute(frame, &mut answer);
        (answer, flow)
    }

    fn answer(&mut self, frame: &Frame, answer: &FaultAnswer) {
        let status = Status::from_code(answer.status);
        let datatype = if answer.json {
            Datatype::JSON
        } else {
            Datatype::RAW
        };
        match &answer.body {
            None if status == Status::NotMyVbucket => {
                self.session.refuse_vbucket(frame, &mut self.outbound);
            }
            body => {
                let value = body.as_deref().unwrap_or_default();
                let response = KvResponse {
                    datatype,
                    value,
                    ..KvResponse::default()
                };
                self.session
                    .writer()
                    .write(frame, status, response, &mut self.outbound);
            }
        }
    }

    /// Sends what is already written before the connection closes, without waiting for long.
    async fn say_last_words<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) {
        let words = async {
            writer.write_all(&self.outbound).await?;
            writer.shutdown().await
        };
        if let Ok(Err(error)) = tokio::time::timeout(LAST_WORDS, words).await {
            tracing::debug!(%error, "the last answers did not leave");
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let sum = &self.session.shared.unsent;
        sum.fetch_sub(self.unsent, Ordering::Relaxed);
    }
}

fn shrink(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > MAX_IDLE_BUFFER {
        *buffer = BytesMut::with_capacity(READ_BYTES);
    }
}

fn damage(answer: &mut BytesMut, garble: Garble) {
    if answer.len() < HEADER_LEN {
        return;
    }
    let damaged = match garble {
        Garble::Magic => 0..1,
        Garble::Opaque => 12..16,
        // The third byte of the length, so that the damage is thousands of bytes and not millions.
        Garble::Length => 10..11,
        Garble::Body => HEADER_LEN..answer.len(),
    };
    answer[damaged].iter_mut().for_each(|byte| *byte = !*byte);
}

#[cfg(test)]
mod tests;
