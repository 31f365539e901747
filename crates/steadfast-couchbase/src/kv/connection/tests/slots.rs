//! Operations beyond the limit of those in flight.

use super::*;

fn limit(in_flight: usize) -> ConnectionLimits {
    ConnectionLimits {
        in_flight,
        ..ConnectionLimits::default()
    }
}

fn submit_in_turn(connection: &Arc<Connection>, turn: &Turn) -> Result<Ticket, SubmitError> {
    let admission = Admission::Turn(turn);
    connection.submit(Opcode::Set, None, admission, |opaque, out| {
        let frame = FrameBuilder::request(Opcode::Set).opaque(opaque);
        frame.encode(out)
    })
}

/// Returns whether it is this operation's turn.
async fn is_called(turn: &Turn) -> bool {
    std::future::poll_fn(|cx| Poll::Ready(turn.poll(cx).is_ready())).await
}

#[tokio::test]
async fn slots_are_granted_in_order_one_for_each_response() {
    let mut pair = pair(limit(2)).await;
    let connection = &pair.connection;
    let mut first: Vec<_> = (0..2)
        .map(|number| submit(connection, number, 10, None).unwrap())
        .collect();
    let line: Vec<_> = (0..3).map(|_| connection.wait_in_line()).collect();
    assert!(!is_called(&line[0]).await);
    for place in 0..2 {
        let opaque = pair.peer.request().await.unwrap().opaque();
        pair.peer.answer(Opcode::Set, opaque).await;
        soon(first.remove(0)).await.unwrap();
        assert!(is_called(&line[place]).await, "{place}");
        assert!(!is_called(&line[place + 1]).await, "{place}");
    }
    // A newcomer does not take the slot of an operation that waits.
    let newcomer = submit(connection, 9, 10, None);
    assert!(matches!(newcomer, Err(SubmitError::Full)));
    let out_of_turn = submit_in_turn(connection, &line[2]);
    assert!(matches!(out_of_turn, Err(SubmitError::Full)));
    let _tickets = [0, 1].map(|place| submit_in_turn(connection, &line[place]).unwrap());
    drop(line);
    assert_eq!(connection.in_flight(), 2);
}

#[tokio::test]
async fn a_dropped_operation_passes_its_turn_on() {
    let mut pair = pair(limit(1)).await;
    let connection = &pair.connection;
    let first = submit(connection, 0, 10, None).unwrap();
    let (called, waiting, last) = (
        connection.wait_in_line(),
        connection.wait_in_line(),
        connection.wait_in_line(),
    );
    let opaque = pair.peer.request().await.unwrap().opaque();
    pair.peer.answer(Opcode::Set, opaque).await;
    soon(first).await.unwrap();
    assert!(is_called(&called).await);
    drop(waiting);
    assert!(!is_called(&last).await);
    drop(called);
    assert!(is_called(&last).await);
    drop(last);
    submit(connection, 1, 10, None).unwrap();
}

#[tokio::test]
async fn ended_operations_that_keep_the_slots_of_others_get_the_connection_replaced() {
    let mut pair = pair(limit(4)).await;
    let connection = &pair.connection;
    let short = Some(Duration::from_millis(20));
    let patient: Vec<_> = (0..2)
        .map(|number| submit(connection, number, 10, None).unwrap())
        .collect();
    let late: Vec<_> = (2..4)
        .map(|number| submit(connection, number, 10, short).unwrap())
        .collect();
    let waits = connection.wait_in_line();
    let mut opaques = Vec::new();
    for _ in 0..4 {
        opaques.push(pair.peer.request().await.unwrap().opaque());
    }
    for ticket in late {
        assert!(connection.is_open());
        soon(ticket).await.unwrap_err();
    }
    assert!(!connection.is_open());
    assert!(is_called(&waits).await);
    let why = soon(connection.draining()).await;
    assert!(matches!(why, CloseReason::Replaced(_)), "{why:?}");
    // The others still get their responses.
    for (ticket, opaque) in patient.into_iter().zip(opaques) {
        pair.peer.answer(Opcode::Set, opaque).await;
        soon(ticket).await.unwrap();
    }
    assert_eq!(soon(pair.task).await.unwrap(), why);
}

#[tokio::test]
async fn a_response_that_never_comes_gets_a_live_connection_replaced() {
    let mut state = State::new(limit(1000));
    let encode = |opaque, out: &mut BytesMut| {
        let frame = FrameBuilder::request(Opcode::Set).opaque(opaque);
        frame.encode(out)
    };
    let (start, mut wakers) = (now(), Vec::new());
    let second = Duration::from_secs(1);
    let deadline = Some(start + second);
    let opaque = state
        .enqueue(Opcode::Set, deadline, Admission::InOrder, None, encode)
        .unwrap();
    state.set_handed(24);
    state.abandon(opaque);
    let mut at = |seconds| {
        let expired = state.expire(start + second * seconds, &mut wakers);
        (expired.overdue, expired.stuck)
    };
    assert_eq!(at(1), (true, false));
    assert_eq!(at(30), (false, false));
    assert_eq!(at(31), (false, true));
    assert_eq!(at(62), (false, false), "once");
}

#[tokio::test]
async fn a_full_buffer_keeps_the_line_in_order() {
    let limits = ConnectionLimits {
        unsent_bytes: HUGE,
        ..ConnectionLimits::default()
    };
    let mut pair = pair(limits).await;
    let connection = &pair.connection;
    let mut stuck = Vec::new();
    while let Ok(ticket) = submit(connection, 0, 8 << 20, None) {
        stuck.push(ticket);
        tokio::task::yield_now().await;
        assert!(stuck.len() < 64, "it grows without end");
    }
    let line = [connection.wait_in_line(), connection.wait_in_line()];
    assert!(!is_called(&line[0]).await);
    for _ in 0..stuck.len() {
        soon(pair.peer.request()).await.unwrap();
    }
    soon(std::future::poll_fn(|cx| line[0].poll(cx))).await;
    submit_in_turn(connection, &line[0]).unwrap();
}
