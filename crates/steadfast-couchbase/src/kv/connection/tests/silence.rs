//! Connections that go silent, and slow ones that do not.

use super::*;

const SHORT: Option<Duration> = Some(Duration::from_millis(20));

fn probed_within(probe_timeout: Duration) -> ConnectionLimits {
    ConnectionLimits {
        probe_timeout,
        ..ConnectionLimits::default()
    }
}

#[tokio::test]
async fn a_silent_connection_is_closed_and_what_is_in_flight_ends_as_in_flight() {
    let mut pair = pair(probed_within(Duration::from_millis(50))).await;
    let patient = submit(&pair.connection, 1, 10, None).unwrap();
    let late = submit(&pair.connection, 2, 10, SHORT).unwrap();
    let ended = soon(late).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::TimedOut, true));
    let ended = soon(patient).await.unwrap_err();
    assert_eq!(ended, ended_by(NoResponseCause::WentSilent, true));
    assert_eq!(soon(pair.task).await.unwrap(), CloseReason::Silent);
    let opcodes = [
        pair.peer.frame().await.unwrap().opcode(),
        pair.peer.frame().await.unwrap().opcode(),
        pair.peer.frame().await.unwrap().opcode(),
    ];
    assert_eq!(opcodes, [Opcode::Set, Opcode::Set, Opcode::Noop]);
    assert!(pair.peer.frame().await.is_none(), "one probe is enough");
}

#[tokio::test]
async fn an_operation_whose_caller_was_dropped_reveals_the_silence_too() {
    let mut pair = pair(probed_within(Duration::from_millis(50))).await;
    let dropped = submit(&pair.connection, 1, 10, SHORT).unwrap();
    pair.peer.frame().await.unwrap();
    drop(dropped);
    assert_eq!(soon(pair.task).await.unwrap(), CloseReason::Silent);
}

#[tokio::test]
async fn an_idle_connection_is_probed_and_closed_when_it_is_silent() {
    let limits = ConnectionLimits {
        idle: Duration::from_millis(50),
        ..probed_within(Duration::from_millis(300))
    };
    let mut pair = pair(limits).await;
    for _ in 0..3 {
        let probe = soon(pair.peer.frame()).await.unwrap();
        assert_eq!(probe.opcode(), Opcode::Noop);
        pair.peer.answer(Opcode::Noop, probe.opaque()).await;
    }
    assert_eq!(soon(pair.task).await.unwrap(), CloseReason::Silent);
}

#[tokio::test]
async fn a_node_that_answers_probes_but_no_operations_keeps_its_connection() {
    let mut pair = pair(probed_within(Duration::from_secs(10))).await;
    for number in 0..5 {
        let late = submit(&pair.connection, number, 10, SHORT).unwrap();
        assert_eq!(pair.peer.frame().await.unwrap().opcode(), Opcode::Set);
        let ended = soon(late).await.unwrap_err();
        assert_eq!(ended, ended_by(NoResponseCause::TimedOut, true));
        let probe = pair.peer.frame().await.unwrap();
        assert_eq!(probe.opcode(), Opcode::Noop);
        pair.peer.answer(Opcode::Noop, probe.opaque()).await;
        until("the probe is answered", || {
            pair.connection.in_flight() == number as usize + 1
        })
        .await;
    }
    assert!(pair.connection.is_open());
    assert!(pair.orphans.try_recv().is_err(), "probes are no orphans");
    assert!(!pair.connection.has_served());
}

#[tokio::test]
async fn bytes_of_a_large_value_that_trickle_in_keep_a_connection_open() {
    let mut pair = pair(probed_within(Duration::from_secs(2))).await;
    let slow = submit(&pair.connection, 1, 10, None).unwrap();
    let opaque = pair.peer.frame().await.unwrap().opaque();
    let mut answer = BytesMut::new();
    FrameBuilder::response(Opcode::Set, Status::Success)
        .opaque(opaque)
        .value(&[7; 100][..])
        .encode(&mut answer)
        .unwrap();
    // Its probe is answered after the value, like everything else.
    for piece in answer.chunks(30) {
        let late = submit(&pair.connection, 2, 10, SHORT).unwrap();
        let ended = soon(late).await.unwrap_err();
        assert_eq!(ended.cause, NoResponseCause::TimedOut);
        pair.peer.socket.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    assert_eq!(soon(slow).await.unwrap().value().len(), 100);
    assert!(pair.connection.is_open());
}

/// A durable write with a deadline of 10 s, and a read behind it with one of 2.5 s.
async fn read_behind_a_durable_write(features: FeatureSet) -> (Pair, Ticket) {
    let pair = pair_with(ConnectionLimits::default(), features).await;
    let write = submit(&pair.connection, 1, 10, Some(Duration::from_secs(10))).unwrap();
    let read = submit(&pair.connection, 2, 10, Some(Duration::from_millis(2500))).unwrap();
    assert_eq!(read.await.unwrap_err().cause, NoResponseCause::TimedOut);
    (pair, write)
}

/// Rounded, because timers of the runtime are coarser.
fn tenths(since: Instant) -> u128 {
    (now() - since).as_millis() / 100
}

#[tokio::test(start_paused = true)]
async fn in_order_a_slow_write_keeps_its_connection_until_its_deadline() {
    let start = now();
    let (mut pair, write) = read_behind_a_durable_write(FeatureSet::default()).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(pair.connection.is_open(), "the write is slow, not the peer");
    let written = pair.peer.frame().await.unwrap();
    pair.peer.answer(Opcode::Set, written.opaque()).await;
    write.await.unwrap();
    assert!(pair.connection.is_open());
    assert!(tenths(start) < 100);
}

#[tokio::test(start_paused = true)]
async fn in_order_a_dead_peer_is_given_up_at_the_deadline_of_the_slow_write() {
    let start = now();
    let (pair, write) = read_behind_a_durable_write(FeatureSet::default()).await;
    assert_eq!(write.await.unwrap_err().cause, NoResponseCause::TimedOut);
    assert_eq!(pair.task.await.unwrap(), CloseReason::Silent);
    assert_eq!(tenths(start), 100);
}

#[tokio::test(start_paused = true)]
async fn unordered_a_dead_peer_is_given_up_whatever_a_write_waits_for() {
    let start = now();
    let unordered = [Feature::UnorderedExecution].into_iter().collect();
    let (pair, write) = read_behind_a_durable_write(unordered).await;
    assert_eq!(write.await.unwrap_err().cause, NoResponseCause::WentSilent);
    assert_eq!(pair.task.await.unwrap(), CloseReason::Silent);
    assert_eq!(tenths(start), 29);
}

/// Returns in tenths of a second when a dead peer is given up that has got one durable write.
async fn given_up_after_a_durable_write(features: FeatureSet) -> u128 {
    let start = now();
    let pair = pair_with(ConnectionLimits::default(), features).await;
    let _write = submit(&pair.connection, 1, 10, Some(Duration::from_secs(10))).unwrap();
    assert_eq!(pair.task.await.unwrap(), CloseReason::Silent);
    tenths(start)
}

#[tokio::test(start_paused = true)]
async fn a_dead_peer_with_a_durable_write_is_given_up_before_the_deadline_unless_in_order() {
    let unordered = [Feature::UnorderedExecution].into_iter().collect();
    assert_eq!(given_up_after_a_durable_write(unordered).await, 29);
    let in_order = FeatureSet::default();
    assert_eq!(given_up_after_a_durable_write(in_order).await, 100);
}

/// The probe of an idle connection is answered, and then the peer dies.
#[tokio::test(start_paused = true)]
async fn a_peer_that_dies_while_idle_is_given_up() {
    let mut pair = pair(ConnectionLimits::default()).await;
    let probe = pair.peer.frame().await.unwrap();
    pair.peer.answer(Opcode::Noop, probe.opaque()).await;
    let died = now();
    assert_eq!(pair.task.await.unwrap(), CloseReason::Silent);
    assert_eq!(tenths(died), 129);
}

/// A value of 5 MB, and then a read, over an uplink of 1 MB/s: the system's buffers take more than
/// half of the value at once, so the socket is not full and the probe waits behind it.
#[tokio::test(start_paused = true)]
async fn a_large_value_on_a_slow_uplink_keeps_its_connection() {
    let unordered = [Feature::UnorderedExecution].into_iter().collect();
    let Pair {
        connection,
        mut peer,
        task,
        ..
    } = pair_with(ConnectionLimits::default(), unordered).await;
    let write = submit(&connection, 1, 5_000_000, Some(Duration::from_secs(30))).unwrap();
    let serving = tokio::spawn(async move {
        let mut piece = vec![0; 100_000];
        let mut opaque = None;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let len = peer.socket.read(&mut piece).await.unwrap();
            peer.received.extend_from_slice(&piece[..len]);
            let decoder = FrameDecoder::from_client().with_max_body(u32::MAX);
            if let Ok(Decoded::Frame(frame)) = decoder.decode(&mut peer.received) {
                opaque.get_or_insert(frame.opaque());
                break;
            }
        }
        peer.answer(Opcode::Set, opaque.unwrap()).await;
        peer
    });
    let outcome = write.await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert!(!task.is_finished());
    drop(serving.await.unwrap());
}
