//! The floors, below which no contender can be: the await itself, the loop one would write by
//! hand, and the clock that a deadline has to be read from.

use std::hint::black_box;

use super::{ATTEMPTS, AWAIT, CLOCK, Contender, LOOP};
use crate::operation::{Peer, Unavailable, ask, drive, repeat};

pub(super) fn bare_await() -> Contender {
    Contender::new(AWAIT, |failures, calls| {
        let peer = Peer::default();
        repeat(&peer, failures, calls, || drive(ask(&peer)));
    })
    .without_retries()
}

pub(super) fn hand_written_loop() -> Contender {
    Contender::new(LOOP, |failures, calls| {
        let peer = Peer::default();
        repeat(&peer, failures, calls, || {
            drive(ask_up_to_three_times(&peer))
        });
    })
}

pub(super) fn clock() -> Contender {
    Contender::new(CLOCK, |_failures, calls| {
        for _ in 0..calls {
            black_box(tokio::time::Instant::now());
        }
    })
    .without_retries()
}

/// No budget, no law, no history, no deadline.
async fn ask_up_to_three_times(peer: &Peer) -> Result<u64, Unavailable> {
    let mut attempt = 1;
    loop {
        match ask(peer).await {
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}
