//! Calls inside the attempts of other calls.
//!
//! Three attempts of an inner call in each of three attempts of an outer one would make
//! nine. So an inner call inside a retry makes one attempt and leaves the retries to the
//! outer call. Inside a first attempt it retries by itself, and if it succeeds then, the
//! outer call is not retried at all. So the attempts add up and do not multiply.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

thread_local! {
    /// Whether this thread is inside the attempt of a call that is not its first.
    static IN_RETRY: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a call that runs here is inside a retry of another one.
pub(super) fn is_inside_retry() -> bool {
    IN_RETRY.get()
}

/// Makes an attempt that is a retry, or a part of it.
pub(super) fn inside_retry<T>(attempt: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_RETRY.set(self.0);
        }
    }
    let _restore = Restore(IN_RETRY.replace(true));
    attempt()
}

/// Polls an attempt that is a retry.
pub(super) fn poll_retry<F: Future>(attempt: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<F::Output> {
    inside_retry(|| attempt.poll(cx))
}
