//! A strategy for each host.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use steadfast::RetryStrategy;

/// Bounds the memory of a program whose users name the hosts.
const MAX_HOSTS: usize = 1024;

/// Strategies by host and port.
///
/// No host is removed to make room: it would come back with a full budget. Hosts
/// beyond the limit share one strategy instead.
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

    /// Returns the strategy of the hosts beyond the limit.
    pub(super) fn others(&self) -> &dyn RetryStrategy {
        &*self.others
    }

    /// Returns the strategy of this host.
    pub(super) fn for_host(&self, host: String) -> Arc<dyn RetryStrategy> {
        // A panic in `make` leaves the map unchanged, so poison is harmless.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(strategy) = known.get(&host) {
            return Arc::clone(strategy);
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_HOSTS && !known.contains_key(&host) {
            return Arc::clone(&self.others);
        }
        Arc::clone(known.entry(host).or_insert_with(|| (self.make)()))
    }
}

/// Returns host and port, for errors and budgets. Leaves out the rest of an
/// authority, such as a password.
pub(crate) fn address(host: Option<&str>, port: Option<u16>, scheme: Option<&str>) -> String {
    let host = host.unwrap_or_default().to_ascii_lowercase();
    let port = port.or(match scheme {
        Some("http") => Some(80),
        Some("https") => Some(443),
        Some(_) | None => None,
    });
    match port {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast::Standard;

    #[test]
    fn a_host_keeps_its_strategy_and_hosts_beyond_the_limit_share_one() {
        let strategies = PerHost::new(Standard::guidance);
        let of = |host: usize| strategies.for_host(format!("host-{host}.example"));
        let first = of(0);
        for host in 1..MAX_HOSTS {
            assert!(!Arc::ptr_eq(&first, &of(host)));
        }
        assert!(Arc::ptr_eq(&first, &of(0)));
        assert!(Arc::ptr_eq(&of(MAX_HOSTS), &of(MAX_HOSTS + 1)));
        assert!(Arc::ptr_eq(&of(MAX_HOSTS), &strategies.others));
        assert!(Arc::ptr_eq(&of(MAX_HOSTS - 1), &of(MAX_HOSTS - 1)));
    }
}
