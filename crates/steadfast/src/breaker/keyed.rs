//! A circuit breaker for each peer.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use super::{BreakerSettings, CircuitBreaker};
use crate::invalid_setting::InvalidSetting;

/// The circuit breakers of many peers, one for each key, such as a node or a host. A
/// peer that fails does not stop attempts at the others.
#[derive(Debug)]
pub struct CircuitBreakers<K = String> {
    settings: BreakerSettings,
    breakers: Mutex<HashMap<K, Arc<CircuitBreaker>>>,
}

impl<K: Eq + Hash> CircuitBreakers<K> {
    /// The largest number of keys. Beyond it, all breakers are dropped and start closed
    /// again. This removes the breakers of peers that no longer exist.
    pub const MAX_KEYS: usize = 4096;

    /// Creates breakers with these settings.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub fn new(settings: BreakerSettings) -> Result<Self, InvalidSetting> {
        settings.validate()?;
        Ok(Self {
            settings,
            breakers: Mutex::default(),
        })
    }

    /// Returns the breaker of a peer.
    pub fn get<Q>(&self, key: &Q) -> Arc<CircuitBreaker>
    where
        K: Borrow<Q> + for<'q> From<&'q Q>,
        Q: Eq + Hash + ?Sized,
    {
        // Under the lock, the only user code that runs is `Eq`, `Hash` and `From` of the key.
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(breaker) = breakers.get(key) {
            return breaker.clone();
        }
        if breakers.len() >= Self::MAX_KEYS {
            breakers.clear();
        }
        let breaker = Arc::new(CircuitBreaker::unchecked(self.settings));
        breakers.insert(K::from(key), breaker.clone());
        breaker
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::breaker::Signal;
    use crate::world::{VirtualWorld, World};

    #[test]
    fn a_peer_that_fails_does_not_stop_attempts_at_others() {
        let now = VirtualWorld::new().now();
        let breakers: CircuitBreakers = CircuitBreakers::new(BreakerSettings::default()).unwrap();
        for _ in 0..20 {
            let breaker = breakers.get("down");
            let permit = breaker.allow(now).unwrap();
            breaker.record(permit, Signal::Failed, now);
        }
        assert!(breakers.get("down").allow(now).is_err());
        assert!(breakers.get("up").allow(now).is_ok());
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let breakers = CircuitBreakers::<String>::new(BreakerSettings::default()).unwrap();
        for key in 0..=CircuitBreakers::<String>::MAX_KEYS {
            breakers.get(key.to_string().as_str());
        }
        assert_eq!(breakers.breakers.lock().unwrap().len(), 1);
    }
}
