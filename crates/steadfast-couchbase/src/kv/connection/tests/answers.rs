//! Matching of responses to operations, and unknown responses.

use super::*;

#[tokio::test]
async fn responses_reach_their_callers_in_any_order() {
    let mut pair = pair(ConnectionLimits::default()).await;
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
async fn a_dropped_operation_reserves_its_opaque_until_its_response_arrives() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = ticket.opaque();
    pair.peer.request().await.unwrap();
    drop(ticket);
    assert_eq!(pair.connection.in_flight(), 1);
    let other = submit(&pair.connection, 2, 10, None).unwrap();
    assert_ne!(other.opaque(), opaque);
    pair.peer.answer(Opcode::Set, opaque).await;
    assert_eq!(soon(pair.orphans.recv()).await, Some(opaque));
    until("the index is free", || pair.connection.in_flight() == 1).await;
    let request = pair.peer.request().await.unwrap();
    pair.peer.answer(Opcode::Set, request.opaque()).await;
    soon(other).await.unwrap();
}

#[tokio::test]
async fn a_response_after_the_deadline_is_an_orphan() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let short = Some(Duration::from_millis(10));
    let ticket = submit(&pair.connection, 1, 10, short).unwrap();
    let opaque = ticket.opaque();
    pair.peer.request().await.unwrap();
    let ended = soon(ticket).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::TimedOut, true));
    pair.peer.answer(Opcode::Set, opaque).await;
    assert_eq!(soon(pair.orphans.recv()).await, Some(opaque));
    let probe = pair.peer.frame().await.unwrap();
    assert_eq!(probe.opcode(), Opcode::Noop);
    pair.peer.answer(Opcode::Noop, probe.opaque()).await;
    until("nothing is in flight", || pair.connection.in_flight() == 0).await;
    assert!(pair.connection.is_open());
}

#[tokio::test]
async fn a_response_with_an_unknown_opaque_closes_the_connection() {
    for (opcode, opaque, twice) in [
        (Opcode::Set, 0x0fff_0000, false),
        (Opcode::Get, 0, false),
        (Opcode::Set, 0, true),
    ] {
        let mut pair = pair(ConnectionLimits::default()).await;
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
        assert!(matches!(closing, CloseReason::Invalid(_)), "{closing:?}");
        let answered = soon(ticket).await;
        assert_eq!(answered.is_ok(), twice, "{answered:?}");
        assert_eq!(pair.connection.in_flight(), 0);
    }
}

#[tokio::test]
async fn a_response_before_garbage_is_delivered() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    let mut out = BytesMut::new();
    let answer = FrameBuilder::response(Opcode::Set, Status::Success).opaque(opaque);
    answer.encode(&mut out).unwrap();
    out.extend_from_slice(&[0x42; 100]);
    pair.peer.socket.write_all(&out).await.unwrap();
    soon(ticket).await.unwrap();
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, CloseReason::Invalid(_)), "{closing:?}");
}

#[tokio::test]
async fn a_frame_with_a_huge_length_closes_the_connection() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    let mut header = vec![0x81, 0x01, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff];
    header.extend_from_slice(&opaque.to_be_bytes());
    header.extend_from_slice(&[0; 8]);
    pair.peer.socket.write_all(&header).await.unwrap();
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, CloseReason::Invalid(_)), "{closing:?}");
    let ended = soon(ticket).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::Closed, true));
}

/// Opaques can be guessed. An operation that was "answered" and is sent later could be
/// applied after a retry.
#[tokio::test]
async fn a_response_to_an_operation_that_was_not_sent_closes_the_connection() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let blocking = submit(&pair.connection, 1, HUGE, None).unwrap();
    let unsent = submit(&pair.connection, 2, 10, None).unwrap();
    pair.peer.answer(Opcode::Set, unsent.opaque()).await;
    let ended = soon(unsent).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::Closed, false));
    let ended = soon(blocking).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::Closed, true));
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, CloseReason::Invalid(_)), "{closing:?}");
    assert!(pair.peer.request().await.is_none(), "it is never sent");
}

/// The rest of the frame would follow the retry, and both could be applied.
#[tokio::test]
async fn a_response_to_an_operation_of_which_a_part_was_sent_closes_the_connection() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let begun = submit(&pair.connection, 1, HUGE, None).unwrap();
    // It has begun when its header arrives.
    pair.peer.socket.readable().await.unwrap();
    pair.peer.answer(Opcode::Set, begun.opaque()).await;
    let ended = soon(begun).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::Closed, true));
    let closing = soon(pair.task).await.unwrap();
    assert!(matches!(closing, CloseReason::Invalid(_)), "{closing:?}");
}
