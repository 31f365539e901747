//! Bytes handed to the socket, and bytes cut out of the stream.

use super::*;

#[tokio::test]
async fn a_closed_connection_distinguishes_sent_from_unsent_operations() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let first = submit(&pair.connection, 0, 100, None).unwrap();
    pair.peer.request().await.unwrap();
    // Nobody reads: the socket takes the beginning of the second, and no byte of
    // the others.
    let second = submit(&pair.connection, 1, HUGE, None).unwrap();
    let others: Vec<_> = (2..100)
        .map(|number| submit(&pair.connection, number, 100, None).unwrap())
        .collect();
    tokio::time::sleep(Duration::from_millis(50)).await;
    pair.connection.close(CloseReason::Lost("test".to_owned()));
    for ticket in [first, second] {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended, ended_by(NoResponseCause::Closed, true));
    }
    for ticket in others {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended, ended_by(NoResponseCause::Closed, false));
    }
    // The peer, reading to the end, finds no trace of them.
    assert!(soon(pair.peer.request()).await.is_none());
    assert!(pair.peer.received.len() < HUGE);
    assert_eq!(pair.connection.in_flight(), 0);
}

#[tokio::test]
async fn an_operation_that_times_out_unsent_is_never_sent() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let short = Some(Duration::from_millis(20));
    let blocks = submit(&pair.connection, 0, HUGE, None).unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let late: Vec<_> = (1..20)
        .map(|number| submit(&pair.connection, number, 100, short).unwrap())
        .collect();
    let patient = submit(&pair.connection, 20, 100, None).unwrap();
    for ticket in late {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended, ended_by(NoResponseCause::TimedOut, false));
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
async fn an_operation_that_is_dropped_unsent_is_never_sent() {
    let mut pair = pair(ConnectionLimits::default()).await;
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
async fn an_operation_that_is_dropped_half_sent_is_sent_whole() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let half = submit(&pair.connection, 0, HUGE, None).unwrap();
    let handed = || pair.connection.state.lock().handed();
    until("its beginning is handed to the socket", || handed() > 0).await;
    assert!(handed() < HUGE as u64, "the socket took all of it");
    drop(half);
    let next = submit(&pair.connection, 1, 100, None).unwrap();
    assert_eq!(number(&soon(pair.peer.request()).await.unwrap()), 0);
    let frame = soon(pair.peer.request()).await.unwrap();
    assert_eq!(number(&frame), 1);
    pair.peer.answer(Opcode::Set, frame.opaque()).await;
    soon(next).await.unwrap();
}

/// The task writes without the lock. A caller on another thread gives up meanwhile.
#[tokio::test]
async fn an_operation_that_is_dropped_while_it_is_written_is_sent_whole() {
    let limits = ConnectionLimits::default();
    let ends = ConnectionEnds::default();
    let connection = Connection::new(ends, FeatureSet::default(), None, limits);
    let [first, second, third] =
        [0, 1, 2].map(|number| submit(&connection, number, 100, None).unwrap());
    let mut taken = BytesMut::new();
    let start = connection.state.lock().take_out(&mut taken);
    let (frame, end) = (taken.len() as u64 / 3, start + taken.len() as u64);
    // The third is not sent. The others are being written, and the socket takes half of
    // the first.
    drop(third);
    let piece = connection.state.lock().begin_piece(start, end);
    assert_eq!(piece, (0, 2 * frame));
    drop(first);
    drop(second);
    let position = start + frame / 2;
    let mut state = connection.state.lock();
    state.set_handed(position);
    assert_eq!(state.begin_piece(position, end), (0, 2 * frame - frame / 2));
}

/// Submits, drops, times out, reads and answers in random order.
#[tokio::test]
async fn cuts_leave_a_valid_stream_of_frames() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pair = pair(ConnectionLimits::default()).await;
    let mut tickets: Vec<(u32, Ticket)> = Vec::new();
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
                    let poll =
                        std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut ticket).poll(cx)));
                    match poll.await {
                        Poll::Pending => waiting.push((number, ticket)),
                        Poll::Ready(Ok(_)) => {}
                        Poll::Ready(Err(ended)) => {
                            assert_eq!(ended.cause, NoResponseCause::TimedOut);
                            if !ended.sent {
                                unsent.insert(number);
                            }
                        }
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
