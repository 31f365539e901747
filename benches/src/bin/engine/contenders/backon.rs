//! backon: counts attempts, and has no budget that calls could share.

use std::future::ready;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable};

use super::{ATTEMPTS, Contender};
use crate::operation::{Peer, ask, drive, repeat};

pub(super) fn contender() -> Contender {
    let backoff = ConstantBuilder::new()
        .with_delay(Duration::ZERO)
        .with_max_times(ATTEMPTS as usize - 1);
    Contender::new("backon, without a budget", move |failures, calls| {
        let peer = Peer::default();
        repeat(&peer, failures, calls, || {
            drive((|| ask(&peer)).retry(backoff).sleep(|_| ready(())))
        });
    })
}
