//! A connection against a peer that the test plays itself.

use std::future::Future;
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
    /// The next request, or nothing if there is no whole one before the end.
    async fn request(&mut self) -> Option<Frame> {
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
    task: JoinHandle<Closing>,
    peer: Peer,
    orphans: mpsc::UnboundedReceiver<u32>,
}

async fn pair(limits: Limits) -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (ours, theirs) = tokio::join!(TcpStream::connect(address), listener.accept());
    let ends = ("peer:1".into(), "local:1".into());
    let connection = Connection::new(ends, FeatureSet::default(), None, limits);
    let (heard, orphans) = mpsc::unbounded_channel();
    let io = Io::Plain(ours.unwrap());
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
) -> Result<Ticket<'_>, NotTaken> {
    let mut value = vec![0; len.max(4)];
    value[..4].copy_from_slice(&number.to_be_bytes());
    let deadline = timeout.map(|timeout| now() + timeout);
    connection.submit(Opcode::Set, deadline, |opaque, out| {
        let frame = FrameBuilder::request(Opcode::Set).opaque(opaque);
        frame.value(&value[..]).encode(out)
    })
}

fn number(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.value()[..4].try_into().unwrap())
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

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let mut pair = pair(Limits::default()).await;
    let tickets: Vec<_> = (0..50)
        .map(|number| submit(&pair.connection, number, 10, None).unwrap())
        .collect();
    let mut requests = Vec::new();
    for _ in 0..50 {
        requests.push(pair.peer.request().await.unwrap());
    }
    for request in requests.iter().rev() {
        pair.peer.answer(Opcode::Set, request.opaque()).await;
    }
    for ticket in tickets {
        let opaque = ticket.opaque();
        assert_eq!(soon(ticket).await.unwrap().opaque(), opaque);
    }
    assert_eq!(pair.connection.in_flight(), 0);
}

#[tokio::test]
async fn what_was_not_sent_when_the_connection_ends_is_told_from_what_may_have_been() {
    let mut pair = pair(Limits::default()).await;
    let first = submit(&pair.connection, 0, 100, None).unwrap();
    pair.peer.request().await.unwrap();
    // Nobody reads: the socket takes the beginning of the second, and no byte of
    // the others.
    let second = submit(&pair.connection, 1, HUGE, None).unwrap();
    let others: Vec<_> = (2..100)
        .map(|number| submit(&pair.connection, number, 100, None).unwrap())
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    pair.connection.close(Closing::Lost("test".to_owned()));
    for ticket in [first, second] {
        let ended = soon(ticket).await.unwrap_err();
        let sent = true;
        assert_eq!(
            ended,
            Ended::Closed {
                sent,
                by_user: false
            }
        );
    }
    for ticket in others {
        let ended = soon(ticket).await.unwrap_err();
        let sent = false;
        assert_eq!(
            ended,
            Ended::Closed {
                sent,
                by_user: false
            }
        );
    }
    // The peer, reading to the end, finds no trace of them.
    assert!(soon(pair.peer.request()).await.is_none());
    assert!(pair.peer.received.len() < HUGE);
    assert_eq!(pair.connection.in_flight(), 0);
}

#[tokio::test]
async fn what_runs_out_of_time_unsent_is_never_sent() {
    let mut pair = pair(Limits::default()).await;
    let short = Some(Duration::from_millis(20));
    let blocks = submit(&pair.connection, 0, HUGE, None).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let late: Vec<_> = (1..20)
        .map(|number| submit(&pair.connection, number, 100, short).unwrap())
        .collect();
    let patient = submit(&pair.connection, 20, 100, None).unwrap();
    for ticket in late {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended, Ended::TimedOut { sent: false });
    }
    assert_eq!(number(&soon(pair.peer.request()).await.unwrap()), 0);
    // The next in the stream is the one behind all those that were cut out.
    let next = soon(pair.peer.request()).await.unwrap();
    assert_eq!(number(&next), 20);
    pair.peer.answer(Opcode::Set, next.opaque()).await;
    soon(patient).await.unwrap();
    drop(blocks);
}

#[tokio::test]
async fn what_is_dropped_unsent_is_never_sent_and_leaves_nothing() {
    let mut pair = pair(Limits::default()).await;
    let blocks = submit(&pair.connection, 0, HUGE, None).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let dropped: Vec<_> = (1..20)
        .map(|number| submit(&pair.connection, number, 100, None).unwrap())
        .collect();
    let kept = submit(&pair.connection, 20, 100, None).unwrap();
    assert_eq!(pair.connection.in_flight(), 21);
    drop(dropped);
    assert_eq!(pair.connection.in_flight(), 2);
    assert_eq!(number(&soon(pair.peer.request()).await.unwrap()), 0);
    let next = soon(pair.peer.request()).await.unwrap();
    assert_eq!(number(&next), 20);
    pair.peer.answer(Opcode::Set, next.opaque()).await;
    soon(kept).await.unwrap();
    drop(blocks);
}

#[tokio::test]
async fn what_is_dropped_in_flight_keeps_its_opaque_until_the_answer_came() {
    let mut pair = pair(Limits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = ticket.opaque();
    pair.peer.request().await.unwrap();
    drop(ticket);
    assert_eq!(pair.connection.in_flight(), 1);
    let other = submit(&pair.connection, 2, 10, None).unwrap();
    assert_ne!(other.opaque(), opaque);
    pair.peer.answer(Opcode::Set, opaque).await;
    assert_eq!(soon(pair.orphans.recv()).await, Some(opaque));
    until("the slot is free", || pair.connection.in_flight() == 1).await;
    let request = pair.peer.request().await.unwrap();
    pair.peer.answer(Opcode::Set, request.opaque()).await;
    soon(other).await.unwrap();
}

#[tokio::test]
async fn an_answer_after_the_deadline_is_an_orphan_and_does_no_harm() {
    let mut pair = pair(Limits::default()).await;
    let short = Some(Duration::from_millis(10));
    let ticket = submit(&pair.connection, 1, 10, short).unwrap();
    let opaque = ticket.opaque();
    pair.peer.request().await.unwrap();
    let ended = soon(ticket).await.unwrap_err();
    assert_eq!(ended, Ended::TimedOut { sent: true });
    pair.peer.answer(Opcode::Set, opaque).await;
    assert_eq!(soon(pair.orphans.recv()).await, Some(opaque));
    assert_eq!(pair.connection.in_flight(), 0);
    assert!(pair.connection.is_open());
}

#[tokio::test]
async fn deadlines_end_each_operation_in_its_own_time() {
    let pair = pair(Limits::default()).await;
    let start = now();
    let tickets: Vec<_> = [60, 20, 40]
        .map(|millis| {
            let timeout = Duration::from_millis(millis);
            (
                timeout,
                submit(&pair.connection, 0, 10, Some(timeout)).unwrap(),
            )
        })
        .into();
    for (timeout, ticket) in tickets {
        let ended = soon(ticket).await.unwrap_err();
        assert!(matches!(ended, Ended::TimedOut { .. }));
        assert!(now() >= start + timeout);
    }
}

#[tokio::test]
async fn an_answer_that_nobody_asked_for_closes_the_connection() {
    for (opcode, opaque, twice) in [
        (Opcode::Set, 0x0fff_0000, false),
        (Opcode::Get, 0, false),
        (Opcode::Set, 0, true),
    ] {
        let mut pair = pair(Limits::default()).await;
        let ticket = submit(&pair.connection, 1, 10, None).unwrap();
        let asked = pair.peer.request().await.unwrap().opaque();
        let mut out = BytesMut::new();
        let answer = FrameBuilder::response(opcode, Status::Success).opaque(asked | opaque);
        answer.encode(&mut out).unwrap();
        let answers = if twice {
            [&out[..], &out[..]].concat()
        } else {
            out.to_vec()
        };
        pair.peer.socket.write_all(&answers).await.unwrap();
        let closing = soon(pair.task).await.unwrap();
        assert!(matches!(closing, Closing::Invalid(_)), "{closing:?}");
        let answered = soon(ticket).await;
        assert_eq!(answered.is_ok(), twice, "{answered:?}");
        assert_eq!(pair.connection.in_flight(), 0);
    }
}

#[tokio::test]
async fn an_answer_before_garbage_is_an_answer() {
    let mut pair = pair(Limits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    let mut out = BytesMut::new();
    let answer = FrameBuilder::response(Opcode::Set, Status::Success).opaque(opaque);
    answer.encode(&mut out).unwrap();
    out.extend_from_slice(&[0x42; 100]);
    pair.peer.socket.write_all(&out).await.unwrap();
    soon(ticket).await.unwrap();
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, Closing::Invalid(_)), "{closing:?}");
}

#[tokio::test]
async fn a_frame_that_promises_too_much_closes_the_connection_before_it_is_made_room_for() {
    let mut pair = pair(Limits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    let mut header = vec![0x81, 0x01, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    header.extend_from_slice(&opaque.to_be_bytes());
    header.extend_from_slice(&[0; 8]);
    pair.peer.socket.write_all(&header).await.unwrap();
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, Closing::Invalid(_)), "{closing:?}");
    let ended = soon(ticket).await.unwrap_err();
    let sent = true;
    assert_eq!(
        ended,
        Ended::Closed {
            sent,
            by_user: false
        }
    );
}

#[tokio::test]
async fn a_draining_connection_takes_no_more_and_ends_when_all_is_answered() {
    let mut pair = pair(Limits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    pair.connection.drain();
    let refused = submit(&pair.connection, 2, 10, None);
    assert!(matches!(refused, Err(NotTaken::Closed)));
    assert!(!pair.task.is_finished());
    pair.peer.answer(Opcode::Set, opaque).await;
    soon(ticket).await.unwrap();
    assert_eq!(soon(pair.task).await.unwrap(), Closing::NotNeeded);
}

#[tokio::test]
async fn there_is_a_limit_to_what_is_in_flight_and_to_what_is_unsent() {
    let limits = Limits {
        in_flight: 2,
        ..Limits::default()
    };
    let pair_of_two = pair(limits).await;
    let _taken: Vec<_> = (0..2)
        .map(|number| submit(&pair_of_two.connection, number, 10, None).unwrap())
        .collect();
    let third = submit(&pair_of_two.connection, 2, 10, None);
    assert!(matches!(third, Err(NotTaken::Full)));
    let limits = Limits {
        unsent_bytes: HUGE,
        ..Limits::default()
    };
    let stuck = pair(limits).await;
    let mut taken = Vec::new();
    while let Ok(ticket) = submit(&stuck.connection, 0, 1 << 20, None) {
        taken.push(ticket);
        tokio::task::yield_now().await;
        assert!(taken.len() < 64, "it grows without end");
    }
}

#[tokio::test]
async fn whatever_ends_the_task_ends_its_operations() {
    let pair = pair(Limits::default()).await;
    let tickets: Vec<_> = (0..10)
        .map(|number| submit(&pair.connection, number, 10, None).unwrap())
        .collect();
    pair.task.abort();
    for ticket in tickets {
        let ended = soon(ticket).await.unwrap_err();
        assert!(matches!(ended, Ended::Closed { by_user: false, .. }));
    }
    let refused = submit(&pair.connection, 2, 10, None);
    assert!(matches!(refused, Err(NotTaken::Closed)));
}

/// Requests come, run out of time and are dropped while the peer reads in fits
/// and starts. What it reads is whole frames, each once, and none that was said
/// not to be sent.
#[tokio::test]
async fn the_stream_is_whole_whatever_is_cut_out_of_it() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pair = pair(Limits::default()).await;
    let mut tickets: Vec<(u32, Ticket<'_>)> = Vec::new();
    let mut unsent = std::collections::BTreeSet::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut next = 0;
    for _ in 0..2000 {
        match random.u8(..10) {
            0..4 => {
                let len = if random.u8(..20) == 0 { 1 << 20 } else { 200 };
                let timeout = match random.u8(..3) {
                    0 => Some(Duration::from_micros(random.u64(1..3000))),
                    _ => None,
                };
                tickets.push((next, submit(&pair.connection, next, len, timeout).unwrap()));
                next += 1;
            }
            4..6 if !tickets.is_empty() => {
                let place = random.usize(..tickets.len());
                tickets.swap_remove(place);
            }
            6..8 => {
                let read = pair.peer.request();
                let patience = Duration::from_micros(500);
                if let Ok(frame) = tokio::time::timeout(patience, read).await {
                    let frame = frame.expect("the stream is broken");
                    assert!(seen.insert(number(&frame)), "sent twice");
                    if random.bool() {
                        pair.peer.answer(Opcode::Set, frame.opaque()).await;
                    }
                }
            }
            _ => {
                let mut waiting = Vec::new();
                for (number, mut ticket) in tickets.drain(..) {
                    let poll = std::future::poll_fn(|cx| {
                        std::task::Poll::Ready(std::pin::Pin::new(&mut ticket).poll(cx))
                    });
                    match poll.await {
                        std::task::Poll::Ready(Err(Ended::TimedOut { sent: false })) => {
                            unsent.insert(number);
                        }
                        std::task::Poll::Ready(Ok(_) | Err(Ended::TimedOut { .. })) => {}
                        std::task::Poll::Ready(Err(ended)) => panic!("{ended:?}"),
                        std::task::Poll::Pending => waiting.push((number, ticket)),
                    }
                }
                tickets = waiting;
            }
        }
    }
    // The last one says when all before it were read.
    let last = submit(&pair.connection, next, 10, None).unwrap();
    loop {
        let frame = soon(pair.peer.request())
            .await
            .expect("the stream is broken");
        assert!(seen.insert(number(&frame)), "sent twice");
        if number(&frame) == next {
            pair.peer.answer(Opcode::Set, frame.opaque()).await;
            break;
        }
    }
    soon(last).await.unwrap();
    let wrong: Vec<_> = unsent.intersection(&seen).collect();
    assert!(
        wrong.is_empty(),
        "sent though it was said not to be: {wrong:?}"
    );
    let _: Bytes = pair.peer.received.freeze();
}
