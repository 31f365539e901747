//! Gauges: connections, circuit breakers, brakes and the budget of a client.
//!
//! They are sampled, so that neither an operation nor a connection pays for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{Label, gauge};

use super::metrics::cluster_labels;
use crate::client::Core;
use crate::metrics::{
    BREAKER_OPEN, BUDGET_CAPACITY, BUDGET_LEVEL, CONNECTIONS, SHEDDING, describe,
};
use crate::topology::Node;
use crate::world::now;

/// The time from one update to the next.
const INTERVAL: Duration = Duration::from_secs(5);

/// Describes the metrics, and updates the gauges until the client is closed, and then sets them to 0.
///
/// Cancel-safe: dropping the future leaves the last values.
pub(crate) async fn publish_gauges(core: Arc<Core>) {
    describe();
    let mut gauges = Gauges::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => gauges.update(&core),
            () = core.closed.cancelled() => return gauges.clear(),
        }
    }
}

/// The gauges of the nodes in the last update, by bucket and node.
#[derive(Default)]
struct Gauges {
    of_nodes: HashMap<(Arc<str>, Arc<str>), NodeGauges>,
}

struct NodeGauges {
    labels: Vec<Label>,
    has_breaker: bool,
    has_brake: bool,
}

/// The values of a node's gauges. The default is for a node that has left.
#[derive(Default)]
struct NodeValues {
    connections: usize,
    is_open: bool,
    shedding: f64,
}

impl NodeValues {
    fn of(node: &Node, time: Instant) -> Self {
        let (breaker, load_aware) = (node.breaker.as_ref(), node.load_aware.as_ref());
        Self {
            connections: node.connections().count(),
            is_open: breaker.is_some_and(|breaker| breaker.is_open(time)),
            shedding: load_aware.map_or(0.0, |it| 1.0 - it.state(time).admitted),
        }
    }
}

impl NodeGauges {
    fn set(&self, values: &NodeValues) {
        let NodeValues {
            connections,
            is_open,
            shedding,
        } = *values;
        gauge!(CONNECTIONS, self.labels.clone()).set(connections as f64);
        if self.has_breaker {
            gauge!(BREAKER_OPEN, self.labels.clone()).set(f64::from(u8::from(is_open)));
        }
        if self.has_brake {
            gauge!(SHEDDING, self.labels.clone()).set(shedding);
        }
    }
}

impl Gauges {
    fn update(&mut self, core: &Core) {
        let time = now();
        let mut before = std::mem::take(&mut self.of_nodes);
        for bucket in core.buckets() {
            let routes = bucket.routes.load();
            for node in routes.iter().flat_map(|routes| routes.nodes()) {
                let key = (bucket.name.clone(), node.label.clone());
                let known = before.remove(&key);
                let gauges = known.unwrap_or_else(|| NodeGauges::new(core, &bucket.name, node));
                gauges.set(&NodeValues::of(node, time));
                self.of_nodes.insert(key, gauges);
            }
        }
        // The nodes that have left.
        let left = NodeValues::default();
        before.values().for_each(|gauges| gauges.set(&left));
        if let Some(budget) = core.strategy.info().budget() {
            gauge!(BUDGET_LEVEL).set(f64::from(budget.level()));
            gauge!(BUDGET_CAPACITY).set(f64::from(budget.capacity()));
        }
    }

    fn clear(&mut self) {
        let closed = self.of_nodes.drain();
        closed.for_each(|(_, gauges)| gauges.set(&NodeValues::default()));
    }
}

impl NodeGauges {
    fn new(core: &Core, bucket: &Arc<str>, node: &Node) -> Self {
        let mut labels = vec![
            Label::new("db.namespace", bucket.to_string()),
            Label::new("server.address", node.address.host.to_string()),
            Label::new("server.port", node.address.port.to_string()),
        ];
        labels.extend(cluster_labels(&core.labels()));
        Self {
            labels,
            has_breaker: node.breaker.is_some(),
            has_brake: node.load_aware.is_some(),
        }
    }
}
