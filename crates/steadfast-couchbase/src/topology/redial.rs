//! Decides when to dial again after a connection ended.
//!
//! Dialling goes through the orchestrator, in rounds. Within a round the delays
//! grow. A useful connection ends the round, so that the next begins quickly. A
//! connection was useful if it lasted, or if an operation got a response through it.
//! If every connection counted, a server that accepts, authenticates and hangs up
//! would be dialled in a tight loop. If only long ones counted, a network that cut
//! connections for a while would see its clients return a second late. A server that
//! answers one operation and hangs up every time remains: therefore rounds have a
//! minimum interval, which a few in a row may undercut.

use std::future::Future;
use std::time::Duration;

use steadfast::Backoff;
use tokio::sync::watch;
use tokio::time::Instant;

use super::redial_strategy::RedialStrategy;
use crate::client::Core;
use crate::kv::connection::{CloseReason, Connection};
use crate::kv::handshake::Rejected;

/// A connection that lasted this long has proven itself, served or not.
const PROVEN: Duration = Duration::from_secs(1);
/// The time from one round to the next, in the long run.
const PACE: Duration = Duration::from_millis(50);
/// The number of rounds that may begin without a wait.
const AT_ONCE: u32 = 8;

/// Dials one connection again and again, in rounds.
pub(super) struct Redialer {
    strategy: RedialStrategy,
    /// Changes when there are new credentials.
    renewals: watch::Receiver<u64>,
    /// The time at which the rounds so far would be over, each taking [`PACE`].
    in_pace_at: Instant,
}

impl Redialer {
    pub(super) fn new(core: &Core) -> Self {
        Self::with(core.options.reconnect_backoff.clone(), core.renewals())
    }

    pub(super) fn with(backoff: Backoff, renewals: watch::Receiver<u64>) -> Self {
        Self {
            strategy: RedialStrategy::new(backoff),
            renewals,
            in_pace_at: Instant::now(),
        }
    }

    /// Dials until a connection was useful. `connect_and_run` dials, and ends with
    /// its connection: `Ok` if that was useful.
    ///
    /// New credentials end the wait, and the round begins again with them. A
    /// connection that is up stays up.
    ///
    /// Cancel-safe: dropping the future ends the round, and another may begin.
    pub(super) async fn round<F: Future<Output = Result<(), Rejected>>>(
        &mut self,
        operation: &'static str,
        is_up: impl Fn() -> bool,
        connect_and_run: impl Fn() -> F,
    ) -> Result<(), steadfast::Error<Rejected>> {
        loop {
            let now = Instant::now();
            self.in_pace_at = self.in_pace_at.max(now) + PACE;
            let ahead = self.in_pace_at.saturating_duration_since(now);
            tokio::time::sleep(ahead.saturating_sub(PACE * AT_ONCE)).await;
            let round = steadfast::retry(&self.strategy)
                .operation(operation)
                .idempotent(true)
                .classify(RedialStrategy::classify)
                .run(|_| connect_and_run());
            tokio::select! {
                ended = round => return ended,
                () = renewed_unless(&is_up, &mut self.renewals) => {}
            }
        }
    }
}

/// Completes when there are new credentials and no connection. Cancel-safe.
async fn renewed_unless(is_up: impl Fn() -> bool, renewals: &mut watch::Receiver<u64>) {
    while renewals.changed().await.is_ok() {
        if !is_up() {
            return;
        }
    }
    std::future::pending().await
}

/// Returns whether a closed connection was useful, so that the round succeeded.
pub(super) fn end_of_connection(
    connection: &Connection,
    opened_at: Instant,
    closing: CloseReason,
) -> Result<(), Rejected> {
    let lasted = opened_at.elapsed() >= PROVEN;
    match closing {
        CloseReason::ByUser | CloseReason::NotNeeded | CloseReason::Replaced(_) => Ok(()),
        CloseReason::Lost(_) | CloseReason::Silent | CloseReason::Invalid(_) if lasted => Ok(()),
        CloseReason::Lost(_) | CloseReason::Silent if connection.has_served() => Ok(()),
        CloseReason::Silent => Err(Rejected::lost("the connection went silent".to_owned())),
        // A peer that breaks the protocol has not served.
        CloseReason::Lost(text) | CloseReason::Invalid(text) => Err(Rejected::lost(text)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::BytesMut;
    use parking_lot::Mutex;
    use steadfast_wire::hello::FeatureSet;
    use steadfast_wire::{Decoded, FrameBuilder, FrameDecoder, Opcode, Status};

    use super::*;
    use crate::kv::connection::{Admission, ConnectionEnds, ConnectionLimits};

    const MS: Duration = Duration::from_millis(1);

    fn redialer(renewals: &watch::Sender<u64>) -> Redialer {
        let options = crate::ClusterOptions::new();
        Redialer::with(options.reconnect_backoff, renewals.subscribe())
    }

    /// When connections are dialled that all end so after this time.
    async fn dialled(lives: usize, life: Duration, end: Result<(), ()>) -> Vec<Duration> {
        let start = Instant::now();
        let times = Mutex::new(Vec::new());
        let rounds = async {
            let renewals = watch::Sender::new(0);
            let mut redialer = redialer(&renewals);
            loop {
                let connect = || async {
                    times.lock().push(start.elapsed());
                    if times.lock().len() > lives {
                        std::future::pending().await
                    }
                    tokio::time::sleep(life).await;
                    end.map_err(|()| Rejected::lost("cut".to_owned()))
                };
                let _ = redialer.round("connect", || false, connect).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(3600), rounds).await;
        times.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn useful_connections_are_dialled_quickly_again_after_a_burst_of_cuts() {
        let at = dialled(100, 3 * MS, Ok(())).await;
        let waits: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (first, later) = waits.split_at(AT_ONCE as usize - 1);
        assert!(first.iter().all(|wait| *wait <= 5 * MS), "{first:?}");
        assert!(later.iter().all(|wait| *wait <= PACE + 2 * MS), "{later:?}");
        let in_all = at[100] - at[0];
        assert!(in_all >= PACE * (100 - AT_ONCE), "{in_all:?}: no hot loop");
    }

    #[tokio::test(start_paused = true)]
    async fn a_useful_connection_is_dialled_again_at_once() {
        let at = dialled(10, PACE, Ok(())).await;
        assert!(at.windows(2).all(|pair| pair[1] - pair[0] <= PACE + 2 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn useless_connections_are_dialled_by_the_backoff_for_herds() {
        let herd = Backoff::reconnect();
        let mut second = Duration::ZERO;
        for _ in 0..20 {
            let at = dialled(40, Duration::ZERO, Err(())).await;
            for (retries, pair) in at.windows(2).enumerate() {
                let (wait, longest) = (pair[1] - pair[0], herd.longest(retries as u32));
                // The timer rounds up to milliseconds.
                assert!(wait <= longest + 2 * MS, "{retries}: {wait:?}");
            }
            // The most dials that a long outage costs, with three deviations of luck.
            let mean = (at[40] - at[2]) / 38;
            assert!(mean > Duration::from_secs(4), "{mean:?} between dials");
            second = second.max(at[2] - at[1]);
        }
        assert!(second > Duration::from_secs(4), "spread over {second:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn new_credentials_end_the_wait_for_the_next_dial() {
        let renewals = watch::Sender::new(0);
        let mut redialer = redialer(&renewals);
        let dialled = Mutex::new(Instant::now());
        let connect = || async {
            *dialled.lock() = Instant::now();
            Err(Rejected::lost("refused".to_owned()))
        };
        let mut round = std::pin::pin!(redialer.round("connect", || false, connect));
        // Until the waits are the longest there are, and one of them has just begun.
        let _ = tokio::time::timeout(Duration::from_secs(100), &mut round).await;
        let before = *dialled.lock();
        while *dialled.lock() == before {
            let _ = tokio::time::timeout(MS, &mut round).await;
        }
        renewals.send_modify(|renewals| *renewals += 1);
        let renewed = Instant::now();
        let _ = tokio::time::timeout(MS, &mut round).await;
        assert!(*dialled.lock() >= renewed, "it still waits");
    }

    #[tokio::test(start_paused = true)]
    async fn new_credentials_do_not_end_a_connection_that_is_up() {
        let renewals = watch::Sender::new(0);
        let mut redialer = redialer(&renewals);
        let dials = Mutex::new(0);
        let connect = || async {
            *dials.lock() += 1;
            std::future::pending().await
        };
        let mut round = std::pin::pin!(redialer.round("connect", || true, connect));
        for _ in 0..2 {
            let _ = tokio::time::timeout(Duration::from_secs(1), &mut round).await;
            renewals.send_modify(|renewals| *renewals += 1);
        }
        assert_eq!(*dials.lock(), 1);
    }

    fn connection() -> Arc<Connection> {
        let ends = ConnectionEnds {
            peer: "peer:1".into(),
            local: "local:1".into(),
            ..ConnectionEnds::default()
        };
        Connection::new(
            ends,
            FeatureSet::default(),
            None,
            ConnectionLimits::default(),
        )
    }

    fn lost() -> CloseReason {
        CloseReason::Lost("cut".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_lasted_was_useful_whatever_ended_it() {
        for closing in [lost(), CloseReason::Invalid("garbage".to_owned())] {
            let opened_at = Instant::now();
            tokio::time::advance(PROVEN - MS).await;
            assert!(end_of_connection(&connection(), opened_at, closing.clone()).is_err());
            tokio::time::advance(MS).await;
            assert!(end_of_connection(&connection(), opened_at, closing).is_ok());
        }
        for closing in [CloseReason::ByUser, CloseReason::NotNeeded] {
            assert!(end_of_connection(&connection(), Instant::now(), closing).is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_answered_an_operation_was_useful() {
        for (opcode, served) in [(Opcode::Get, true), (Opcode::GetClusterConfig, false)] {
            let connection = connection();
            let ticket = connection
                .submit(opcode, None, Admission::InOrder, |opaque, out| {
                    FrameBuilder::request(opcode).opaque(opaque).encode(out)
                })
                .unwrap();
            let mut answer = BytesMut::new();
            FrameBuilder::response(opcode, Status::KeyNotFound)
                .opaque(ticket.opaque())
                .encode(&mut answer)
                .unwrap();
            let end = |closing| end_of_connection(&connection, Instant::now(), closing);
            assert!(end(lost()).is_err(), "not yet");
            let decoded = FrameDecoder::from_server().decode(&mut answer);
            let Ok(Decoded::Frame(answer)) = decoded else {
                panic!("{decoded:?}")
            };
            connection.deliver(answer);
            assert_eq!(end(lost()).is_ok(), served);
            assert_eq!(end(CloseReason::Silent).is_ok(), served);
            let broken = CloseReason::Invalid("invalid frame".to_owned());
            assert!(end(broken).is_err());
            let replaced = CloseReason::Replaced("the server returned 0x25".to_owned());
            assert!(end(replaced).is_ok());
        }
    }
}
