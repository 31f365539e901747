//! Ends of operations and connections, and rejected operations.

use super::*;

#[tokio::test]
async fn each_operation_ends_at_its_own_deadline() {
    let pair = pair(ConnectionLimits::default()).await;
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
        assert_eq!(ended.cause, NoResponseCause::TimedOut);
        assert!(now() >= start + timeout);
    }
}

#[tokio::test]
async fn a_draining_connection_accepts_nothing_and_ends_after_the_last_response() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let ticket = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.request().await.unwrap().opaque();
    pair.connection.drain(CloseReason::NotNeeded);
    let refused = submit(&pair.connection, 2, 10, None);
    assert!(matches!(refused, Err(SubmitError::Closed)));
    assert!(!pair.task.is_finished());
    pair.peer.answer(Opcode::Set, opaque).await;
    soon(ticket).await.unwrap();
    assert_eq!(soon(pair.task).await.unwrap(), CloseReason::NotNeeded);
}

#[tokio::test]
async fn operations_in_flight_and_unsent_bytes_are_limited() {
    let limits = ConnectionLimits {
        in_flight: 2,
        ..ConnectionLimits::default()
    };
    let pair_of_two = pair(limits).await;
    let _taken: Vec<_> = (0..2)
        .map(|number| submit(&pair_of_two.connection, number, 10, None).unwrap())
        .collect();
    let third = submit(&pair_of_two.connection, 2, 10, None);
    assert!(matches!(third, Err(SubmitError::Full)));
    let limits = ConnectionLimits {
        unsent_bytes: HUGE,
        ..ConnectionLimits::default()
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
async fn an_aborted_task_ends_its_operations() {
    let pair = pair(ConnectionLimits::default()).await;
    let tickets: Vec<_> = (0..10)
        .map(|number| submit(&pair.connection, number, 10, None).unwrap())
        .collect();
    pair.task.abort();
    for ticket in tickets {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended.cause, NoResponseCause::Closed);
    }
    let refused = submit(&pair.connection, 2, 10, None);
    assert!(matches!(refused, Err(SubmitError::Closed)));
}
