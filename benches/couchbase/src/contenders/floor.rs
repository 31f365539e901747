//! The floor: one connection, a slab of wakers, and nothing else.
//!
//! No routing but the vbucket, no deadlines, no retries, no errors: what goes
//! wrong is a panic. Callers append their frames to a buffer under a lock, a
//! task writes the buffer and reads the answers, and the answers' wakers are
//! woken when the lock is released. It speaks the protocol through the same
//! `steadfast-wire`, so that what a client costs beyond it is the client's own.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use parking_lot::Mutex;
use slab::Slab;
use steadfast_wire::extras;
use steadfast_wire::{
    Datatype, Decoded, Frame, FrameBuilder, FrameDecoder, Opcode, Status, vbucket,
};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

use super::Client;
use crate::load::Document;
use crate::server::{BUCKET, PASSWORD, USER, VBUCKETS};

/// How much is read at once.
const READ: usize = 64 << 10;
const JSON_FLAGS: u32 = 0x0200_0000;

#[derive(Clone)]
struct Floor {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    out: BytesMut,
    slots: Slab<Slot>,
    /// The task's, while it sleeps.
    waker: Option<Waker>,
}

enum Slot {
    Awaited(Option<Waker>),
    Here(Frame),
}

pub(super) async fn connect(server: &str) -> impl Client {
    let (scheme, hosts) = server.split_once("://").expect("a connection string");
    let address = hosts
        .split([',', '/', '?'])
        .next()
        .expect("a split has a first part");
    let mut stream = TcpStream::connect(address).await.expect("the node is up");
    stream.set_nodelay(true).expect("a socket takes the option");
    // memcached has neither users nor buckets.
    if scheme == "couchbase" {
        let login = format!("\0{USER}\0{PASSWORD}");
        let login = FrameBuilder::request(Opcode::SaslAuth)
            .key(&b"PLAIN"[..])
            .value(login.as_bytes());
        ask(&mut stream, |out| login.encode(out)).await;
        let select = FrameBuilder::request(Opcode::SelectBucket).key(BUCKET.as_bytes());
        ask(&mut stream, |out| select.encode(out)).await;
    }
    let state = Arc::new(Mutex::new(State::default()));
    let mut task = Task::new(stream, state.clone());
    tokio::spawn(async move { poll_fn(|cx| task.poll(cx)).await });
    Floor { state }
}

/// One question before the task has the socket.
async fn ask<E: std::fmt::Debug>(
    stream: &mut TcpStream,
    encode: impl FnOnce(&mut BytesMut) -> Result<(), E>,
) {
    let mut buffer = BytesMut::new();
    encode(&mut buffer).expect("the bootstrap fits its frames");
    stream.write_all(&buffer).await.expect("the node listens");
    buffer.clear();
    loop {
        match FrameDecoder::from_server().decode(&mut buffer) {
            Ok(Decoded::Frame(answer)) => {
                assert_eq!(answer.status(), Status::Success);
                return;
            }
            Ok(Decoded::NeedMore(_)) => {}
            Err(error) => panic!("a bad frame: {error}"),
        }
        let read = stream.read_buf(&mut buffer).await;
        assert_ne!(read.expect("the node answers"), 0);
    }
}

impl Client for Floor {
    async fn get(&self, key: &'static str) -> usize {
        let request = FrameBuilder::request(Opcode::Get)
            .vbucket(vbucket::of_key(key.as_bytes(), VBUCKETS))
            .key(key.as_bytes());
        let answer = self.submit(|opaque, out| request.opaque(opaque).encode(out));
        answer.await.into_value().len()
    }

    async fn upsert(&self, key: &'static str, document: &'static Document) {
        let (flags, expiry) = (JSON_FLAGS, 0);
        let request = FrameBuilder::request(Opcode::Set)
            .vbucket(vbucket::of_key(key.as_bytes(), VBUCKETS))
            .datatype(Datatype::RAW)
            .extras(extras::StoreExtras { flags, expiry })
            .key(key.as_bytes())
            .value(document.json.as_bytes());
        self.submit(|opaque, out| request.opaque(opaque).encode(out))
            .await;
    }
}

impl Floor {
    fn submit<E: std::fmt::Debug>(
        &self,
        encode: impl FnOnce(u32, &mut BytesMut) -> Result<(), E>,
    ) -> Answer<'_> {
        let mut state = self.state.lock();
        let place = state.slots.insert(Slot::Awaited(None));
        encode(place as u32, &mut state.out).expect("the document fits its frame");
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        let state = &self.state;
        Answer { state, place }
    }
}

struct Answer<'a> {
    state: &'a Mutex<State>,
    place: usize,
}

impl Future for Answer<'_> {
    type Output = Frame;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Frame> {
        let mut state = self.state.lock();
        if let Slot::Awaited(waker) = &mut state.slots[self.place] {
            *waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Slot::Here(frame) = state.slots.remove(self.place) else {
            unreachable!("it is not awaited any more");
        };
        drop(state);
        assert_eq!(frame.status(), Status::Success);
        Poll::Ready(frame)
    }
}

struct Task {
    stream: TcpStream,
    state: Arc<Mutex<State>>,
    received: BytesMut,
    writing: BytesMut,
    done: usize,
    frames: Vec<Frame>,
    wakers: Vec<Waker>,
}

impl Task {
    fn new(stream: TcpStream, state: Arc<Mutex<State>>) -> Self {
        Self {
            stream,
            state,
            received: BytesMut::new(),
            writing: BytesMut::new(),
            done: 0,
            frames: Vec::new(),
            wakers: Vec::new(),
        }
    }

    /// Runs until the runtime is shut down.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.poll_read(cx).is_ready() {}
        loop {
            if self.done == self.writing.len() {
                self.writing.clear();
                self.done = 0;
                let mut state = self.state.lock();
                if state.out.is_empty() {
                    state.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                std::mem::swap(&mut state.out, &mut self.writing);
            }
            let rest = &self.writing[self.done..];
            match Pin::new(&mut self.stream).poll_write(cx, rest) {
                Poll::Ready(written) => self.done += written.expect("the node listens"),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.received.capacity() - self.received.len() < READ / 2 {
            self.received.reserve(READ);
        }
        let read = poll_read_buf(Pin::new(&mut self.stream), cx, &mut self.received);
        let Poll::Ready(read) = read else {
            return Poll::Pending;
        };
        assert_ne!(read.expect("the node answers"), 0, "the node hung up");
        let decoder = FrameDecoder::from_server();
        while let Decoded::Frame(frame) = decoder
            .decode(&mut self.received)
            .expect("the node sends frames")
        {
            self.frames.push(frame);
        }
        let mut state = self.state.lock();
        for frame in self.frames.drain(..) {
            let slot = &mut state.slots[frame.opaque() as usize];
            let awaited = std::mem::replace(slot, Slot::Here(frame));
            if let Slot::Awaited(waker) = awaited {
                self.wakers.extend(waker);
            }
        }
        drop(state);
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        Poll::Ready(())
    }
}
