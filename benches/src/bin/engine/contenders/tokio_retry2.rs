//! tokio-retry2: counts attempts, and has no budget that calls could share.
//!
//! It hands every delay to tokio's timer, a delay of nothing too, and the timer
//! rounds up to its next millisecond. So a retry needs a runtime and cannot but
//! sleep; a first-try success is polled like everybody else's.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_retry2::strategy::FixedInterval;
use tokio_retry2::{Retry, RetryError};

use super::{ATTEMPTS, Contender};
use crate::operation::{Peer, ask, drive, repeat};

pub(super) fn contender() -> Contender {
    Contender::new("tokio-retry2, without a budget", |failures, calls| {
        let peer = Peer::default();
        let delays = || FixedInterval::new(Duration::ZERO).take(ATTEMPTS as usize - 1);
        if failures == 0 {
            repeat(&peer, failures, calls, || {
                drive(Retry::spawn(delays(), || async {
                    ask(&peer).await.map_err(RetryError::transient)
                }))
            });
        } else {
            let runtime = runtime();
            repeat(&peer, failures, calls, || {
                runtime.block_on(Retry::spawn(delays(), || async {
                    ask(&peer).await.map_err(RetryError::transient)
                }))
            });
        }
    })
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime with nothing but a timer can be built")
}
