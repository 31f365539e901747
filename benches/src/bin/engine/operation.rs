//! The operation that every contender makes, and the loop that polls it.
//!
//! It is the same for all: no I/O, no sleep, never pending. What is left when
//! its price is taken away is the price of having its failures handled.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// A peer that fails a given number of times and then succeeds.
#[derive(Default)]
pub(crate) struct Peer {
    failures: Cell<u32>,
}

/// The failure of an attempt, worth another one.
#[derive(Debug)]
pub(crate) struct Unavailable(pub(crate) u32);

/// One attempt. Not inlined, as nothing that goes to a network ever is, and so
/// that no contender's loop can be folded away around it.
#[inline(never)]
pub(crate) async fn ask(peer: &Peer) -> Result<u64, Unavailable> {
    black_box(peer.reply())
}

/// Makes calls. Each fails a given number of times before it succeeds.
///
/// # Panics
/// If a call did not succeed in the end: a contender that gives up early would
/// look fast.
pub(crate) fn repeat<E>(
    peer: &Peer,
    failures: u32,
    calls: u64,
    mut call: impl FnMut() -> Result<u64, E>,
) {
    let mut answered = 0;
    for _ in 0..calls {
        peer.failures.set(black_box(failures));
        answered += u64::from(black_box(call()).is_ok());
    }
    assert_eq!(answered, calls, "a call was given up");
}

/// Polls a future that never waits, without any runtime around it.
#[inline(always)]
pub(crate) fn drive<F: Future>(future: F) -> F::Output {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the operation is never pending, and no delay is waited for"),
    }
}

impl Peer {
    // `inline(never)` on an async function is a promise about the function that
    // makes the future. This one is what runs when the future is polled.
    #[inline(never)]
    fn reply(&self) -> Result<u64, Unavailable> {
        match self.failures.get() {
            0 => Ok(black_box(42)),
            left => {
                self.failures.set(left - 1);
                Err(Unavailable(black_box(left)))
            }
        }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unavailable, {} more to come", self.0)
    }
}

impl Error for Unavailable {}
