//! tower: the retry middleware, with the budget that tower ships.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use tower::retry::budget::{Budget, TpsBudget};
use tower::retry::{Policy, Retry};
use tower::{Service, ServiceExt, service_fn};

use super::Contender;
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn contender() -> Contender {
    let policy = Budgeted(Arc::new(budget()));
    Contender::new("tower, retry with its budget", move |failures, calls| {
        let peer = Peer::default();
        // One for each thread, made once: the middleware itself clones what it
        // needs for a call.
        let mut service = Retry::new(policy.clone(), service_fn(|()| ask(&peer)));
        repeat(&peer, failures, calls, || {
            drive(async { service.ready().await?.call(()).await })
        });
    })
}

/// The policy of tower's own example: every success deposits, every retry
/// withdraws.
#[derive(Clone)]
struct Budgeted(Arc<TpsBudget>);

impl Policy<(), u64, Unavailable> for Budgeted {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        (): &mut (),
        result: &mut Result<u64, Unavailable>,
    ) -> Option<Self::Future> {
        match result {
            Ok(_) => {
                self.0.deposit();
                None
            }
            Err(_) => self.0.withdraw().then(|| ready(())),
        }
    }

    fn clone_request(&mut self, (): &()) -> Option<()> {
        Some(())
    }
}

/// As many withdrawals as deposits, and a reserve: it never runs dry.
fn budget() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 1_000_000, 1.0)
}
