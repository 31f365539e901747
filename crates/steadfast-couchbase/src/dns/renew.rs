//! The seed hosts, which are looked up again when none of them responds.
//!
//! In Kubernetes, all nodes of a cluster may be replaced while a client runs. Then
//! neither the nodes of its last config nor its first hosts exist any more, and only
//! the DNS SRV record names the new ones. The addresses of plain host names need no
//! such care: every dial resolves them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{SrvLookup, look_up, seeds};
use crate::connection_string::ConnectionString;
use crate::options::ClusterOptions;
use crate::topology::Address;

/// The shortest time from one lookup to the next.
const PACE: Duration = Duration::from_secs(3);

/// The hosts to start from.
pub(crate) struct Seeds {
    known: ArcSwap<Vec<Address>>,
    /// Their source, and the time of the last lookup.
    source: Option<(ConnectionString, Arc<dyn SrvLookup>, Mutex<Instant>)>,
}

impl Seeds {
    /// Looks up the hosts. Cancel-safe: dropping the future abandons the lookup.
    pub(crate) async fn find(
        string: ConnectionString,
        options: &ClusterOptions,
        dns: Arc<dyn SrvLookup>,
    ) -> Self {
        let known = seeds(&string, options, &*dns).await;
        Self {
            known: ArcSwap::from_pointee(known),
            source: Some((string, dns, Mutex::new(Instant::now()))),
        }
    }

    pub(crate) fn get(&self) -> Arc<Vec<Address>> {
        self.known.load_full()
    }

    /// Looks the hosts up again, unless that was done a moment ago. Without an answer
    /// the known ones stay.
    ///
    /// Cancel-safe: dropping the future abandons the lookup.
    pub(crate) async fn renew(&self, options: &ClusterOptions) {
        let Some((string, dns, looked_up)) = &self.source else {
            return;
        };
        // Others wait for this lookup, and do not repeat it.
        let mut looked_up = looked_up.lock().await;
        if looked_up.elapsed() < PACE {
            return;
        }
        if let Some(found) = look_up(string, options, &**dns).await {
            self.known.store(Arc::new(found));
        }
        *looked_up = Instant::now();
    }
}

/// Hosts that stay the same.
impl From<Vec<Address>> for Seeds {
    fn from(known: Vec<Address>) -> Self {
        Self {
            known: ArcSwap::from_pointee(known),
            source: None,
        }
    }
}
