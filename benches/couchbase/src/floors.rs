//! Ways below the floor: what the kernel's interfaces would save a client.
//!
//! The floor uses tokio: one `epoll_wait`, one `recv` and one `send` for each batch. Here the
//! same bytes take other ways, on one thread without a runtime, so nothing but the way differs.

use std::error::Error;
use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Instant;

use bytes::BytesMut;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::epoll;
use steadfast_benches::measure::median;
use steadfast_benches::table::Table;
use steadfast_wire::extras::StoreExtras;
use steadfast_wire::{FrameBuilder, Opcode, vbucket};

use crate::load::LEN;
use crate::processors;
use crate::runtime::processor_time;
use crate::server::{BUCKET, PASSWORD, Server, USER, VBUCKETS};

const ROUNDS: usize = 7;
const KEY: &[u8] = b"document";
const HEADER: usize = 24;
/// `MSG_WAITALL`.
const WAIT_FOR_ALL: i32 = 0x100;

/// A way to send a batch of requests and to receive all responses.
trait Way {
    fn exchange(&mut self, requests: &[u8], responses: &mut [u8]) -> io::Result<()>;
}

/// `send`, then `recv` until all is there. The thread sleeps in `recv`.
struct Blocking(TcpStream);

impl Way for Blocking {
    fn exchange(&mut self, requests: &[u8], responses: &mut [u8]) -> io::Result<()> {
        self.0.write_all(requests)?;
        self.0.read_exact(responses)
    }
}

/// As tokio does: `send`, then `epoll_wait` and `recv` in turns.
struct Epoll {
    stream: TcpStream,
    epoll: rustix::fd::OwnedFd,
}

impl Epoll {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &stream, epoll::EventData::new_u64(0), edges)?;
        Ok(Self { stream, epoll })
    }
}

impl Way for Epoll {
    fn exchange(&mut self, requests: &[u8], responses: &mut [u8]) -> io::Result<()> {
        self.stream.write_all(requests)?;
        let (mut events, mut received) = (Vec::with_capacity(1), 0);
        while received < responses.len() {
            events.clear();
            epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            )?;
            received += read_some(&mut self.stream, &mut responses[received..])?;
        }
        Ok(())
    }
}

/// `send`, then `recv` again and again, without sleeping.
struct Spinning(TcpStream);

impl Way for Spinning {
    fn exchange(&mut self, requests: &[u8], responses: &mut [u8]) -> io::Result<()> {
        self.0.write_all(requests)?;
        let mut received = 0;
        while received < responses.len() {
            received += read_some(&mut self.0, &mut responses[received..])?;
        }
        Ok(())
    }
}

/// Reads what there is. Nothing is zero bytes.
fn read_some(stream: &mut TcpStream, into: &mut [u8]) -> io::Result<usize> {
    match stream.read(into) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        read => read,
    }
}

/// One system call for both directions.
struct Uring {
    stream: TcpStream,
    ring: IoUring,
}

impl Way for Uring {
    #[expect(unsafe_code, reason = "the ring takes pointers")]
    fn exchange(&mut self, requests: &[u8], responses: &mut [u8]) -> io::Result<()> {
        let socket = types::Fd(self.stream.as_raw_fd());
        let send = opcode::Send::new(socket, requests.as_ptr(), requests.len() as u32)
            .flags(WAIT_FOR_ALL)
            .build()
            .flags(squeue::Flags::IO_LINK);
        let receive = opcode::Recv::new(socket, responses.as_mut_ptr(), responses.len() as u32)
            .flags(WAIT_FOR_ALL)
            .build();
        for entry in [send, receive] {
            // SAFETY: both buffers outlive the two completions that are awaited below.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            pushed.map_err(io::Error::other)?;
        }
        while let Err(error) = self.ring.submit_and_wait(2) {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        for completed in self.ring.completion() {
            if completed.result() < 0 {
                return Err(io::Error::from_raw_os_error(-completed.result()));
            }
        }
        Ok(())
    }
}

/// Prints what each way takes.
///
/// # Errors
/// If the cluster does not start, or the kernel has no io_uring.
pub fn report() -> Result<(), Box<dyn Error>> {
    let server = Server::start(1, 0)?;
    processors::keep_to_first();
    let mut table = Table::new(&["way", "in flight", "ns each", "ns on a processor"]);
    let mut setting = connect(&server)?;
    exchange_upsert(&mut setting, &[b'x'; LEN], false)?;
    for depth in [1, 64, 1024] {
        let ways: [(&str, Box<dyn Way>); 4] = [
            ("epoll", Box::new(Epoll::new(connect(&server)?)?)),
            ("blocking", Box::new(Blocking(connect(&server)?))),
            ("spinning", {
                let stream = connect(&server)?;
                stream.set_nonblocking(true)?;
                Box::new(Spinning(stream))
            }),
            ("io_uring", {
                let (stream, ring) = (connect(&server)?, IoUring::new(4)?);
                Box::new(Uring { stream, ring })
            }),
        ];
        for (name, mut way) in ways {
            let (wall, cpu) = gets(&mut *way, depth)?;
            table.row(vec![
                name.to_owned(),
                depth.to_string(),
                format!("{wall:.0}"),
                format!("{cpu:.0}"),
            ]);
        }
    }
    println!("{table}");
    let mut table = Table::new(&["bytes of a document", "copied, µs", "vectored, µs", "ratio"]);
    for len in [1_000, 10_000, 100_000, 1_000_000, 10_000_000] {
        let value = vec![b'x'; len];
        let mut stream = connect(&server)?;
        let copied = upserts(&mut stream, &value, false)?;
        let vectored = upserts(&mut stream, &value, true)?;
        table.row(vec![
            len.to_string(),
            format!("{copied:.1}"),
            format!("{vectored:.1}"),
            format!("{:.2}", copied / vectored),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// The nanoseconds of a get with so many in flight, by the clock and on a processor.
fn gets(way: &mut dyn Way, depth: usize) -> io::Result<(f64, f64)> {
    let mut requests = BytesMut::new();
    for _ in 0..depth {
        let get = FrameBuilder::request(Opcode::Get);
        let get = get.vbucket(vbucket::of_key(KEY, VBUCKETS)).key(KEY);
        encoded(get.encode(&mut requests));
    }
    // The response has the flags and the document.
    let mut responses = vec![0; depth * (HEADER + 4 + LEN)];
    let batches = (40_000 / depth).max(200);
    let (mut walls, mut cpus) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (wall, cpu) = (Instant::now(), processor_time());
        for _ in 0..batches {
            way.exchange(&requests, &mut responses)?;
        }
        let each = 1e9 / (batches * depth) as f64;
        walls.push(wall.elapsed().as_secs_f64() * each);
        cpus.push((processor_time() - cpu).as_secs_f64() * each);
    }
    Ok((median(walls), median(cpus)))
}

/// The microseconds of an upsert, one after the other.
fn upserts(stream: &mut TcpStream, value: &[u8], vectored: bool) -> io::Result<f64> {
    let count = (50_000_000 / value.len()).clamp(5, 5_000);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..count {
            exchange_upsert(stream, value, vectored)?;
        }
        rounds.push(start.elapsed().as_secs_f64() * 1e6 / count as f64);
    }
    Ok(median(rounds))
}

/// Writes a document. The value is copied behind its header, or sent from where it is.
fn exchange_upsert(stream: &mut TcpStream, value: &[u8], vectored: bool) -> io::Result<()> {
    let (flags, expiry) = (0, 0);
    let upsert = FrameBuilder::request(Opcode::Set)
        .vbucket(vbucket::of_key(KEY, VBUCKETS))
        .extras(StoreExtras { flags, expiry })
        .key(KEY);
    let mut out = BytesMut::new();
    if vectored {
        encoded(upsert.encode(&mut out));
        let body = (out.len() - HEADER + value.len()) as u32;
        out[8..12].copy_from_slice(&body.to_be_bytes());
        let mut parts = [IoSlice::new(&out), IoSlice::new(value)];
        let mut parts = &mut parts[..];
        while !parts.is_empty() {
            let written = stream.write_vectored(parts)?;
            IoSlice::advance_slices(&mut parts, written);
        }
    } else {
        encoded(upsert.value(value).encode(&mut out));
        stream.write_all(&out)?;
    }
    let mut head = [0; HEADER];
    stream.read_exact(&mut head)?;
    skip_body(stream, &head)
}

/// Checks that a frame was encoded.
fn encoded<E: std::fmt::Debug>(result: Result<(), E>) {
    result.expect("it fits its frame");
}

/// Checks the status of a response, and reads its body.
fn skip_body(stream: &mut TcpStream, head: &[u8; HEADER]) -> io::Result<()> {
    assert_eq!(head[6..8], [0, 0], "the status is a success");
    let body = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
    stream.read_exact(&mut vec![0; body as usize])
}

/// Connects and logs in.
fn connect(server: &Server) -> io::Result<TcpStream> {
    let (_, hosts) = server
        .connection_string()
        .split_once("://")
        .expect("a connection string");
    let address = hosts.split([',', '/', '?']).next().expect("a first part");
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let login = format!("\0{USER}\0{PASSWORD}");
    let login = FrameBuilder::request(Opcode::SaslAuth)
        .key(&b"PLAIN"[..])
        .value(login.as_bytes());
    let select = FrameBuilder::request(Opcode::SelectBucket).key(BUCKET.as_bytes());
    let (mut first, mut second) = (BytesMut::new(), BytesMut::new());
    encoded(login.encode(&mut first));
    encoded(select.encode(&mut second));
    for frame in [first, second] {
        stream.write_all(&frame)?;
        let mut head = [0; HEADER];
        stream.read_exact(&mut head)?;
        skip_body(&mut stream, &head)?;
    }
    Ok(stream)
}
