//! A connection against a peer that the test plays itself.

mod answers;
mod endings;
mod silence;
mod slots;
mod stream;
mod tls;

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use steadfast_wire::{Decoded, Frame, FrameBuilder, FrameDecoder, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::world::now;

/// More than a socket takes before somebody reads.
const HUGE: usize = 16 << 20;

struct Peer {
    socket: TcpStream,
    received: BytesMut,
}

impl Peer {
    /// The next request of a caller, or nothing if there is no whole one before the
    /// end. Answers probes.
    async fn request(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if frame.opcode() != Opcode::Noop {
                return Some(frame);
            }
            self.answer(Opcode::Noop, frame.opaque()).await;
        }
    }

    /// The next frame.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            let decoder = FrameDecoder::from_client().with_max_body(u32::MAX);
            if let Ok(Decoded::Frame(frame)) = decoder.decode(&mut self.received) {
                return Some(frame);
            }
            match self.socket.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    async fn answer(&mut self, opcode: Opcode, opaque: u32) {
        let mut out = BytesMut::new();
        let answer = FrameBuilder::response(opcode, Status::Success).opaque(opaque);
        answer.encode(&mut out).unwrap();
        self.socket.write_all(&out).await.unwrap();
    }
}

struct Heard(mpsc::UnboundedSender<u32>);

impl Events for Heard {
    fn server_request(&self, _: &Arc<Connection>, _: Frame) {}

    fn orphan(&self, _: &Arc<Connection>, frame: Frame) {
        let _ = self.0.send(frame.opaque());
    }
}

struct Pair {
    connection: Arc<Connection>,
    task: JoinHandle<CloseReason>,
    peer: Peer,
    orphans: mpsc::UnboundedReceiver<u32>,
}

/// A connection to a server that executes in order.
async fn pair(limits: ConnectionLimits) -> Pair {
    pair_with(limits, FeatureSet::default()).await
}

async fn pair_with(limits: ConnectionLimits, features: FeatureSet) -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
    let ends = ConnectionEnds {
        peer: "peer:1".into(),
        local: "local:1".into(),
        ..ConnectionEnds::default()
    };
    let connection = Connection::new(ends, features, None, limits);
    let (heard, orphans) = mpsc::unbounded_channel();
    let io = Io::Left(ours.unwrap().into());
    let task = Task::new(io, connection.clone(), BytesMut::new(), Heard(heard));
    Pair {
        connection,
        task: tokio::spawn(task.run()),
        peer: Peer {
            socket: theirs.unwrap().0,
            received: BytesMut::new(),
        },
        orphans,
    }
}

/// Submits a request whose value has this length, and begins with this number.
fn submit(
    connection: &Arc<Connection>,
    number: u32,
    len: usize,
    timeout: Option<Duration>,
) -> Result<Ticket, SubmitError> {
    let mut value = vec![0; len.max(4)];
    value[..4].copy_from_slice(&number.to_be_bytes());
    let deadline = timeout.map(|timeout| now() + timeout);
    connection.submit(Opcode::Set, deadline, Admission::InOrder, |opaque, out| {
        let frame = FrameBuilder::request(Opcode::Set).opaque(opaque);
        frame.value(&value[..]).encode(out)
    })
}

fn number(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.value()[..4].try_into().unwrap())
}

fn ended_by(cause: NoResponseCause, sent: bool) -> NoResponse {
    NoResponse { cause, sent }
}

async fn soon<F: Future>(future: F) -> F::Output {
    let long = Duration::from_secs(30);
    tokio::time::timeout(long, future).await.expect("it hangs")
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed().as_secs() < 30, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
