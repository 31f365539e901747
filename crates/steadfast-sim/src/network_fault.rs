//! Faults of the simulated network.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use steadfast_cluster::TestCluster;
use tokio::time::{Instant, sleep, sleep_until};

use crate::net::{Direction, Network};

/// A fault of the network, at a time of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkFault {
    /// When it begins, in milliseconds of the run.
    pub at_ms: u64,
    /// How long it lasts, in milliseconds. Faults of existing connections begin and are over.
    pub lasts_ms: u64,
    /// The node: an index into the nodes of that moment, modulo their number.
    pub node: usize,
    /// The direction; both if none.
    pub direction: Option<Direction>,
    /// What happens.
    pub kind: NetworkFaultKind,
}

/// What a fault of the network does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkFaultKind {
    /// Nothing arrives until the end of the fault; then everything does. In both directions it is
    /// a partition.
    Hold,
    /// Nothing arrives any more on the connections that exist. Nobody is told. New ones work.
    Lose,
    /// The connections that exist are reset, each after this number of bytes more.
    Cut {
        /// The most bytes until then; each connection has its own number from zero to this.
        within_bytes: u64,
    },
    /// The connections that exist are reset at once.
    Reset,
    /// Everything takes longer, by up to this time.
    Delay {
        /// The most milliseconds.
        up_to_ms: u64,
    },
    /// The bytes per second that a connection carries.
    Bandwidth {
        /// Bytes per second.
        bytes_per_s: u32,
    },
    /// The receiver reads this number of bytes per second, and the sender's buffer fills.
    SlowReader {
        /// Bytes per second.
        bytes_per_s: u32,
    },
}

impl NetworkFault {
    /// Draws a fault that is over when the run begins to settle.
    pub(crate) fn draw(random: &mut fastrand::Rng, run: Duration) -> Self {
        let run = run.as_millis() as u64;
        let at_ms = random.u64(run / 20..run * 7 / 10);
        let most = (run * 9 / 10 - at_ms).max(2);
        let lasts_ms = match random.u32(..4) {
            0 => random.u64(1..most.min(50)),
            1 | 2 => random.u64(1..most.min(1500)),
            _ => random.u64(1..most.min(6000)),
        };
        let direction = match random.u32(..4) {
            0 => Some(Direction::ToNode),
            1 => Some(Direction::FromNode),
            _ => None,
        };
        let kind = match random.u32(..8) {
            0 | 1 => NetworkFaultKind::Hold,
            2 => NetworkFaultKind::Lose,
            3 => NetworkFaultKind::Cut {
                within_bytes: 1 << random.u32(3..14),
            },
            4 => NetworkFaultKind::Reset,
            5 => NetworkFaultKind::Delay {
                up_to_ms: random.u64(2..400),
            },
            6 => NetworkFaultKind::Bandwidth {
                bytes_per_s: random.u32(2_000..200_000),
            },
            _ => NetworkFaultKind::SlowReader {
                bytes_per_s: random.u32(2_000..200_000),
            },
        };
        Self {
            at_ms,
            lasts_ms,
            node: random.usize(..64),
            direction,
            kind,
        }
    }

    /// Waits for the fault's time and plays it. Dropping the future may leave it in force.
    pub(crate) async fn play(self, started: Instant, network: &Network, cluster: &TestCluster) {
        sleep_until(started + Duration::from_millis(self.at_ms)).await;
        let nodes = cluster.nodes();
        let Some(node) = nodes.get(self.node % nodes.len().max(1)) else {
            return;
        };
        let ports = cluster.ports(*node);
        let both = [Direction::ToNode, Direction::FromNode];
        let directions = match &self.direction {
            Some(one) => std::slice::from_ref(one),
            None => &both,
        };
        // The choices depend on the fault alone, so that others can be removed without effect.
        let mut random = fastrand::Rng::with_seed(self.at_ms ^ (self.lasts_ms << 32));
        for direction in directions.iter().copied() {
            match self.kind {
                NetworkFaultKind::Lose | NetworkFaultKind::Cut { .. } | NetworkFaultKind::Reset => {
                    for connection in network.connections(&ports) {
                        match self.kind {
                            NetworkFaultKind::Lose => connection.lose(direction),
                            NetworkFaultKind::Cut { within_bytes } => {
                                connection.cut_after(direction, random.u64(..=within_bytes));
                            }
                            _ => connection.reset(),
                        }
                    }
                }
                NetworkFaultKind::Hold => network.change(&ports, direction, |it| it.held = true),
                NetworkFaultKind::Delay { up_to_ms } => network.change(&ports, direction, |it| {
                    it.jitter += Duration::from_millis(up_to_ms);
                }),
                NetworkFaultKind::Bandwidth { bytes_per_s } => {
                    network.change(&ports, direction, |it| it.bandwidth = Some(bytes_per_s));
                }
                NetworkFaultKind::SlowReader { bytes_per_s } => {
                    network.change(&ports, direction, |it| it.read_rate = Some(bytes_per_s));
                }
            }
        }
        sleep(Duration::from_millis(self.lasts_ms)).await;
        for direction in directions.iter().copied() {
            network.restore(&ports, direction);
        }
    }
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.direction {
            Some(Direction::ToNode) => "to",
            Some(Direction::FromNode) => "from",
            None => "to and from",
        };
        write!(f, "at {:>6} ms ", self.at_ms)?;
        match self.kind {
            NetworkFaultKind::Hold => write!(f, "hold everything")?,
            NetworkFaultKind::Lose => write!(f, "lose everything on open connections")?,
            NetworkFaultKind::Cut { within_bytes } => {
                write!(f, "cut open connections within {within_bytes} bytes")?;
            }
            NetworkFaultKind::Reset => write!(f, "reset open connections")?,
            NetworkFaultKind::Delay { up_to_ms } => write!(f, "delay by up to {up_to_ms} ms")?,
            NetworkFaultKind::Bandwidth { bytes_per_s } => write!(f, "carry {bytes_per_s} B/s")?,
            NetworkFaultKind::SlowReader { bytes_per_s } => write!(f, "read {bytes_per_s} B/s")?,
        }
        write!(f, " {way} node {}, for {} ms", self.node, self.lasts_ms)
    }
}
