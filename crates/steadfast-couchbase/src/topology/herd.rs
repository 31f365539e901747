//! Ten thousand clients that lose their connections at the same time.
//!
//! The clients dial as the product does. The server is a model of one that accepts a thousand
//! connections per second: its kernel keeps a queue of connections, and drops packets beyond
//! it. A client that gave up leaves its connection in the queue, where it costs as much as any.
//!
//! Every number is a quarter of that, which takes as long and is computed sooner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use super::redial::Redialer;
use crate::hedge::dial_hedged;
use crate::kv::handshake::Rejected;

const CLIENTS: usize = 10_000 / 4;
const TO_ACCEPT: Duration = Duration::from_millis(4);
const BACKLOG: usize = 511 / 4;
const ROUND_TRIP: Duration = Duration::from_millis(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What a node does with dials before it is back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outage {
    /// Its process is gone.
    Refuses,
    /// Its machine or its network is gone.
    DropsPackets,
}

struct SlowNode {
    outage: Outage,
    back_at: Instant,
    queue: Mutex<VecDeque<oneshot::Sender<()>>>,
    /// The connections that were accepted, those of clients that gave up included.
    accepted: Mutex<usize>,
}

impl SlowNode {
    async fn accept(&self) {
        tokio::time::sleep_until(self.back_at).await;
        let mut next = Instant::now();
        loop {
            next += TO_ACCEPT;
            tokio::time::sleep_until(next).await;
            let first = self.queue.lock().pop_front();
            if let Some(client) = first {
                *self.accepted.lock() += 1;
                let _ = client.send(());
            }
        }
    }

    /// Connects: the packet is repeated until the queue has room.
    async fn connect(&self) -> Result<oneshot::Receiver<()>, Rejected> {
        let mut repeats = Duration::from_secs(1);
        loop {
            sleep(ROUND_TRIP).await;
            let is_back = Instant::now() >= self.back_at;
            if !is_back && self.outage == Outage::Refuses {
                return Err(Rejected::refused("refused".to_owned()));
            }
            {
                let mut queue = self.queue.lock();
                if is_back && queue.len() < BACKLOG {
                    let (client, accepted) = oneshot::channel();
                    queue.push_back(client);
                    return Ok(accepted);
                }
            }
            sleep(repeats).await;
            repeats *= 2;
        }
    }
}

/// Returns the time until all are connected, and the accepted connections.
async fn herd(outage: Outage, lasts: Duration) -> (Duration, usize) {
    let back_at = Instant::now() + lasts;
    let node = Arc::new(SlowNode {
        outage,
        back_at,
        queue: Mutex::default(),
        accepted: Mutex::default(),
    });
    let accepting = node.clone();
    let accepting = tokio::spawn(async move { accepting.accept().await });
    let renewals = watch::Sender::new(0);
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (node, renewals) = (node.clone(), renewals.subscribe());
        clients.spawn(async move {
            let backoff = crate::ClusterOptions::new().reconnect_backoff;
            let mut redialer = Redialer::with(backoff, renewals);
            let connect = || async {
                let handshake = |accepted: oneshot::Receiver<()>| async {
                    accepted
                        .await
                        .map_err(|_| Rejected::lost("lost".to_owned()))
                };
                let dialled = dial_hedged(CONNECT_TIMEOUT, || node.connect(), handshake).await;
                dialled.unwrap_or_else(|| Err(Rejected::lost("no connection".to_owned())))
            };
            redialer.round("connect", || false, connect).await.unwrap();
        });
    }
    clients.join_all().await;
    accepting.abort();
    let accepted = *node.accepted.lock();
    (Instant::now() - back_at, accepted)
}

async fn is_connected_within(limit: Duration, outage: Outage, lasts: Duration) {
    let (took, accepted) = herd(outage, lasts).await;
    assert!(took <= limit, "{outage:?} {lasts:?}: {took:?}");
    // Few clients gave up in the queue.
    assert!(
        accepted <= CLIENTS * 5 / 4,
        "{outage:?} {lasts:?}: {accepted}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_herd_is_back_soon_after_an_outage_of_refused_dials() {
    for lasts in [0.5, 5.0] {
        let lasts = Duration::from_secs_f64(lasts);
        is_connected_within(Duration::from_secs(20), Outage::Refuses, lasts).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_herd_is_connected_soon_to_a_port_that_is_open_and_accepts_slowly() {
    let limit = Duration::from_secs(20);
    is_connected_within(limit, Outage::DropsPackets, Duration::ZERO).await;
}

/// All dials end at the connect timeout, and are followed by the backoff for herds.
#[tokio::test(start_paused = true)]
async fn a_herd_is_spread_after_an_outage_that_drops_packets() {
    let limit = Duration::from_secs(25);
    is_connected_within(limit, Outage::DropsPackets, CONNECT_TIMEOUT).await;
}
