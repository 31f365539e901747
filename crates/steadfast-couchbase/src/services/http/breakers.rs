//! The circuit breakers of all endpoints.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Endpoint;
use crate::breaker::Breaker;
use crate::options::BreakerOptions;

/// More endpoints than a cluster has. Those that are gone are forgotten when
/// there are so many, together with the others, which start closed again.
const MAX_ENDPOINTS: usize = 4096;

/// A breaker for each endpoint, if breakers were asked for.
pub(crate) struct Breakers {
    options: Option<BreakerOptions>,
    of_endpoint: Mutex<HashMap<Arc<str>, Arc<Breaker>>>,
}

impl Breakers {
    pub(crate) fn new(options: Option<BreakerOptions>) -> Self {
        Self {
            options,
            of_endpoint: Mutex::default(),
        }
    }

    /// The breaker of an endpoint; `None` if there are none.
    pub(super) fn of(&self, endpoint: &Endpoint) -> Option<Arc<Breaker>> {
        let options = self.options.as_ref()?;
        let mut breakers = self.of_endpoint.lock();
        if let Some(breaker) = breakers.get(&endpoint.authority) {
            return Some(breaker.clone());
        }
        if breakers.len() >= MAX_ENDPOINTS {
            breakers.clear();
        }
        let breaker = Arc::new(Breaker::new(Some(options.clone())));
        breakers.insert(endpoint.authority.clone(), breaker.clone());
        Some(breaker)
    }
}
