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

/// The gauges of the nodes in the last update, by bucket and node: their labels and names.
#[derive(Default)]
struct Gauges {
    of_nodes: HashMap<(Arc<str>, Arc<str>), LabelsAndNames>,
}

type LabelsAndNames = (Vec<Label>, Vec<&'static str>);

impl Gauges {
    fn update(&mut self, core: &Core) {
        let time = now();
        let mut before = std::mem::take(self);
        for bucket in core.buckets() {
            let routes = bucket.routes.load();
            for node in routes.iter().flat_map(|routes| routes.nodes()) {
                let key = (bucket.name.clone(), node.label.clone());
                let (labels, names) = before.of_nodes.remove(&key).unwrap_or_else(|| {
                    let names = values(node, time).map(|(name, _)| name);
                    (labels(core, &bucket.name, node), names.collect())
                });
                for (name, value) in values(node, time) {
                    gauge!(name, labels.clone()).set(value);
                }
                self.of_nodes.insert(key, (labels, names));
            }
        }
        // Those that have left the cluster.
        before.clear();
        if let Some(budget) = core.strategy.info().budget() {
            gauge!(BUDGET_LEVEL).set(f64::from(budget.level()));
            gauge!(BUDGET_CAPACITY).set(f64::from(budget.capacity()));
        }
    }

    fn clear(&mut self) {
        for (labels, names) in self.of_nodes.drain().map(|(_, gauges)| gauges) {
            for name in names {
                gauge!(name, labels.clone()).set(0.0);
            }
        }
    }
}

/// The gauges of a node, with their values now.
fn values(node: &Node, time: Instant) -> impl Iterator<Item = (&'static str, f64)> {
    let breaker = node.breaker.as_ref();
    let breaker = breaker.map(|it| f64::from(u8::from(it.is_open(time))));
    let load_aware = node.load_aware.as_ref();
    let shedding = load_aware.map(|it| 1.0 - it.state(time).admitted);
    [
        (CONNECTIONS, Some(node.connections().count() as f64)),
        (BREAKER_OPEN, breaker),
        (SHEDDING, shedding),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
}

fn labels(core: &Core, bucket: &Arc<str>, node: &Node) -> Vec<Label> {
    let mut labels = vec![
        Label::new("db.namespace", bucket.to_string()),
        Label::new("server.address", node.address.host.to_string()),
        Label::new("server.port", node.address.port.to_string()),
    ];
    labels.extend(cluster_labels(&core.labels()));
    labels
}
