//! A strategy for each host.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use steadfast::RetryStrategy;

/// Where a program's hosts come from its own users, there is no end of them.
const MOST: usize = 1024;

/// Strategies by host and port.
///
/// A host is never forgotten to make room for another: it would come back with
/// a full budget. Those that find no room share a strategy instead.
pub(super) struct PerHost {
    make: Box<dyn Fn() -> Arc<dyn RetryStrategy> + Send + Sync>,
    known: RwLock<HashMap<String, Arc<dyn RetryStrategy>>>,
    others: Arc<dyn RetryStrategy>,
}

impl PerHost {
    pub(super) fn new<S: RetryStrategy + 'static>(
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        let others = Arc::new(make());
        Self {
            make: Box::new(move || Arc::new(make())),
            known: RwLock::default(),
            others,
        }
    }

    /// The strategy of hosts that found no room.
    pub(super) fn others(&self) -> Arc<dyn RetryStrategy> {
        Arc::clone(&self.others)
    }

    /// The strategy of the host with this address.
    pub(super) fn for_host(&self, host: String) -> Arc<dyn RetryStrategy> {
        // A panic of `make` leaves the map as it was, so poison means nothing.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(strategy) = known.get(&host) {
            return Arc::clone(strategy);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&host) {
            return self.others();
        }
        Arc::clone(known.entry(host).or_insert_with(|| (self.make)()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::Standard;

    #[test]
    fn a_host_keeps_its_strategy_and_the_hosts_without_room_share_one() {
        let strategies = PerHost::new(Standard::guidance);
        let of = |host: usize| strategies.for_host(format!("host-{host}.example"));
        let first = of(0);
        for host in 1..MOST {
            assert!(!Arc::ptr_eq(&first, &of(host)));
        }
        assert!(Arc::ptr_eq(&first, &of(0)));
        assert!(Arc::ptr_eq(&of(MOST), &of(MOST + 1)));
        assert!(Arc::ptr_eq(&of(MOST), &strategies.others()));
        assert!(Arc::ptr_eq(&of(MOST - 1), &of(MOST - 1)));
    }
}
