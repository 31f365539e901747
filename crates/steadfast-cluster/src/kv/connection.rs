//! One connection: bytes in, bytes out, faults in between.
//!
//! The loop reads the available bytes, executes every complete frame, and writes all
//! responses at once. It reads and writes at the same time, so a client that sends much
//! before it reads does not deadlock.
//!
//! It stops reading while more than [`MAX_UNSENT`] bytes of responses are unsent: a
//! slow reader slows itself down and does not make the server grow. Delayed responses
//! and pushed maps wait in the same way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use steadfast_os::net::ResetOnClose;
use steadfast_wire::config::ConfigVersion;
use steadfast_wire::frame_info::RequestFrameInfo;
use steadfast_wire::{
    Datatype, Decoded, DocumentKey, Entries, Feature, Frame, FrameDecoder, FrameError, HEADER_LEN,
    Magic, Status,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Instant;

use super::response::KvResponse;
use super::session::{Flow, Session};
use super::stranger::Stranger;
use crate::Service;
use crate::cluster::node::AcceptedConnection;
use crate::fault::{Effect, FaultAnswer, FiredFault, Garble, IncomingRequest};

/// How many bytes are asked for at once.
const READ_BYTES: usize = 64 * 1024;
/// How many bytes of answers may wait for a slow reader before its requests are not read.
const MAX_UNSENT: usize = 4 * 1024 * 1024;
/// How many commands of one connection may wait before no more are read, and how many bytes.
const MAX_WAITING: usize = 16 * 1024;
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;
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
pub(crate) async fn serve<S>(stream: S, reset: ResetOnClose, connection: AcceptedConnection)
where
    S: AsyncRead + AsyncWrite,
{
    let (mut reader, mut writer) = tokio::io::split(stream);
    let published = connection.shared.subscribe();
    let stranger = Stranger::enter(&connection.shared.strangers, connection.id);
    let session = Session::new(connection.shared, connection.node, connection.id);
    let mut link = Link {
        session,
        stranger: Some(stranger),
        login_by: Instant::now() + LOGIN_TIME,
        unsent: 0,
        inbound: BytesMut::with_capacity(STRANGER_READ_BYTES),
        outbound: BytesMut::new(),
        waiting: FuturesUnordered::new(),
        waiting_bytes: 0,
        barriers: 0,
        behind: None,
        map_is_due: false,
        silent: false,
        mute: false,
    };
    match link.run(&mut reader, &mut writer, published).await {
        CloseReason::Closed => {}
        CloseReason::Reset => {
            // Closing with this set sends a reset instead of an orderly end. The stream closes
            // when its halves are dropped, below.
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

/// The cost of a waiting command.
#[derive(Clone, Copy)]
struct Waiting {
    /// Its approximate memory.
    bytes: usize,
    /// Whether later commands must wait for it, even with unordered execution.
    barrier: bool,
}

/// The next step of a command that waited.
enum Resume {
    /// It is executed now.
    Execute(Frame),
    /// Its answer goes out now.
    Send(BytesMut),
}

struct Link {
    session: Session,
    /// Present until the client has authenticated.
    stranger: Option<Stranger>,
    login_by: Instant,
    /// How much of `outbound` counts in the sum over all connections.
    unsent: usize,
    inbound: BytesMut,
    outbound: BytesMut,
    waiting: FuturesUnordered<BoxFuture<'static, (Waiting, Resume)>>,
    /// How many bytes the commands that wait hold on to.
    waiting_bytes: usize,
    /// How many of them nothing may overtake.
    barriers: usize,
    /// A command with a barrier, which waits until all earlier ones are finished.
    behind: Option<Frame>,
    /// Whether a new map is to be pushed to the client.
    map_is_due: bool,
    /// Whether a fault silenced this connection.
    silent: bool,
    /// Whether a fault drops every answer of this connection.
    mute: bool,
}

impl Link {
    async fn run<R, W>(
        &mut self,
        reader: &mut R,
        writer: &mut W,
        mut published: watch::Receiver<ConfigVersion>,
    ) -> CloseReason
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            if let Err(end) = self.take_frames() {
                if !matches!(end, CloseReason::Reset) {
                    self.say_last_words(writer).await;
                }
                return end;
            }
            if self.map_is_due && self.has_room() {
                self.map_is_due = false;
                self.session.push_config(&mut self.outbound);
            }
            if self.mute {
                self.outbound.clear();
            }
            self.account();
            if self.session.user.is_some() {
                self.stranger = None;
            }
            let login = self.login_by;
            // A client that a fault keeps waiting is not slow.
            let is_slow =
                self.stranger.is_some() && self.waiting.is_empty() && !(self.silent || self.mute);
            let (has_room, may_read) = (self.has_room(), self.may_take() && self.has_room());
            tokio::select! {
                biased;
                written = writer.write_buf(&mut self.outbound), if !self.outbound.is_empty() => {
                    match written {
                        Ok(0) | Err(_) => return CloseReason::Closed,
                        // A TLS writer may buffer bytes until it is flushed.
                        Ok(_) if self.outbound.is_empty() => {
                            shrink(&mut self.outbound);
                            if writer.flush().await.is_err() {
                                return CloseReason::Closed;
                            }
                        }
                        Ok(_) => {}
                    }
                }
                read = reader.read_buf(&mut self.inbound), if may_read => match read {
                    Ok(0) | Err(_) => {
                        if self.silent || self.mute {
                            self.session.shared.count_silent_closed();
                        }
                        return CloseReason::Closed;
                    }
                    Ok(_) => {
                        self.session.received = tokio::time::Instant::now();
                        self.session.now = self.session.shared.clock.now();
                    }
                },
                Some((held, resume)) = self.waiting.next(), if has_room && !self.waiting.is_empty() => {
                    self.waiting_bytes -= held.bytes;
                    self.barriers -= usize::from(held.barrier);
                    if let Err(end) = self.resume(resume) {
                        self.say_last_words(writer).await;
                        return end;
                    }
                }
                () = Stranger::displaced(self.stranger.as_ref()) => {
                    tracing::info!(connection = self.session.id, "too many clients without a login");
                    return CloseReason::Closed;
                }
                () = tokio::time::sleep_until(login), if is_slow => {
                    tracing::info!(connection = self.session.id, "the client did not log in");
                    return CloseReason::Closed;
                }
                changed = published.changed() => {
                    let dropped = |bucket: &std::sync::Arc<crate::bucket::Bucket>| {
                        bucket.dropped.is_cancelled()
                    };
                    if changed.is_err() || self.session.bucket.as_ref().is_some_and(dropped) {
                        return CloseReason::Closed;
                    }
                    self.map_is_due = !self.silent;
                }
            }
        }
    }

    /// Executes every whole frame that has come, as far as order and memory allow.
    fn take_frames(&mut self) -> Result<(), CloseReason> {
        if self.silent {
            self.inbound.clear();
            return Ok(());
        }
        if self.waiting.is_empty()
            && let Some(frame) = self.behind.take()
        {
            self.take(frame)?;
        }
        while self.has_room() && self.may_take() {
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
        Ok(())
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

    /// Returns whether another command may start: in order, unless execution is unordered.
    fn may_take(&self) -> bool {
        if self.behind.is_some() {
            return false;
        }
        self.waiting.is_empty()
            || (self.session.features.contains(Feature::UnorderedExecution)
                && self.barriers == 0
                && self.waiting.len() < MAX_WAITING
                && self.waiting_bytes < MAX_WAITING_BYTES)
    }

    fn take(&mut self, frame: Frame) -> Result<(), CloseReason> {
        if frame.header().magic == Magic::ClientResponse {
            // The answer to a map that was pushed. There is nothing to learn from it.
            return Ok(());
        }
        if !self.waiting.is_empty() && has_barrier(&frame) {
            self.behind = Some(frame);
            return Ok(());
        }
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
                self.wait(held(frame), async move { Resume::Send(later.await) });
                Ok(())
            }
        }
    }

    fn wait(&mut self, held: Waiting, later: impl Future<Output = Resume> + Send + 'static) {
        self.waiting
            .push(Box::pin(async move { (held, later.await) }));
        self.waiting_bytes += held.bytes;
        self.barriers += usize::from(held.barrier);
        self.session.waiting = self.waiting.len();
    }

    fn resume(&mut self, resume: Resume) -> Result<(), CloseReason> {
        self.session.waiting = self.waiting.len();
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
        let collections =
            self.session.features.contains(Feature::Collections) && has_document(frame);
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
                self.wait(held(&frame), async move {
                    tokio::time::sleep(by).await;
                    Resume::Execute(frame)
                });
                Ok(())
            }
            Effect::DelayAnswer(by) => {
                let (answer, flow) = self.execute_aside(&frame);
                let mut held = held(&frame);
                held.bytes += answer.len();
                self.wait(held, async move {
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
                self.wait(held(&frame), async move {
                    fired.removed.cancelled().await;
                    Resume::Execute(frame)
                });
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

/// Returns whether the key of a command is a document's, with its collection in front.
fn has_document(frame: &Frame) -> bool {
    use steadfast_wire::Opcode;
    !matches!(
        frame.opcode(),
        Opcode::Hello
            | Opcode::SaslListMechs
            | Opcode::SaslAuth
            | Opcode::SaslStep
            | Opcode::SelectBucket
            | Opcode::Stat
            | Opcode::Noop
            | Opcode::GetClusterConfig
            | Opcode::GetErrorMap
            | Opcode::RangeScanCreate
            | Opcode::RangeScanContinue
            | Opcode::RangeScanCancel
    )
}

fn shrink(buffer: &mut BytesMut) {
    if buffer.is_empty() && buffer.capacity() > MAX_IDLE_BUFFER {
        *buffer = BytesMut::with_capacity(READ_BYTES);
    }
}

/// The cost of a command while it waits. Commands that set a connection up keep their
/// order even with unordered execution: later commands may depend on them.
fn held(frame: &Frame) -> Waiting {
    use steadfast_wire::Opcode;
    let barrier = matches!(
        frame.opcode(),
        Opcode::Hello | Opcode::SaslAuth | Opcode::SaslStep | Opcode::SelectBucket
    ) || has_barrier(frame);
    Waiting {
        bytes: HEADER_LEN + frame.body().len(),
        barrier,
    }
}

/// Whether a command must not be reordered, in either direction.
fn has_barrier(frame: &Frame) -> bool {
    !frame.framing_extras().is_empty()
        && Entries::<RequestFrameInfo<'_>>::new(frame.framing_extras())
            .any(|info| matches!(info, Ok(RequestFrameInfo::Barrier)))
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
