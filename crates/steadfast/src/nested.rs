//! Calls inside the attempts of other calls.
//!
//! Three attempts of an inner call in each of three attempts of an outer one would make
//! nine. So only one of the two retries. Inside a first attempt it is the inner call. If
//! it was retried and did not succeed, the outer call is not retried, whatever its
//! classifier says. Inside a retry it is the outer call: the inner one makes one attempt, and waits
//! only for its own client.
//!
//! Both know of each other by the thread that polls them. So a task that an attempt spawns
//! is not inside it, unless the attempt runs that task itself, as `block_on` and a `LocalSet`
//! do.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// The number of calls in this process that were retried and did not succeed. It is read
/// before every attempt, and a thread-local value would cost more.
static LOST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Whether this thread is inside the attempt of a call that is not its first.
    static IN_RETRY: Cell<bool> = const { Cell::new(false) };
    /// What `LOST` was after the last of these calls that ended on this thread.
    static LAST_LOST: Cell<u64> = const { Cell::new(0) };
}

/// Notes that a call which was retried ends here without success.
#[cold]
pub(crate) fn note_lost_call() {
    LAST_LOST.set(LOST.fetch_add(1, Ordering::Relaxed) + 1);
}

/// Makes an attempt or a part of it. Also returns whether a call inside was retried and did
/// not succeed.
#[inline]
pub(crate) fn with_lost_calls<T>(part: impl FnOnce() -> T) -> (T, bool) {
    let watch = Watch::begin();
    let value = part();
    (value, watch.found())
}

/// A look at an attempt, for calls inside it that were retried and did not succeed.
pub(crate) struct Watch {
    since: u64,
    found: bool,
    waited: bool,
    retry: bool,
}

impl Watch {
    /// Begins before an attempt is made, or polled for the first time.
    #[inline(always)]
    pub(crate) fn begin() -> Self {
        Self {
            since: LOST.load(Ordering::Relaxed),
            found: false,
            waited: false,
            retry: false,
        }
    }

    /// Begins before the attempt with this number.
    #[inline(always)]
    pub(crate) fn of_attempt(number: u32) -> Self {
        let retry = number > 1;
        Self {
            retry,
            ..Self::begin()
        }
    }

    /// Returns a future that polls the attempt once, before any timer is set: most attempts
    /// do not need one.
    #[inline(always)]
    pub(crate) fn once<'f, F: Future>(&self, future: Pin<&'f mut F>) -> Once<'f, F> {
        let retry = self.retry;
        Once { future, retry }
    }

    /// Polls the attempt.
    #[inline(always)]
    pub(crate) fn poll<F: Future>(
        &self,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        inside(self.retry, || future.poll(cx))
    }

    /// Begins again before a poll that is not the first: before it, the thread did
    /// something else.
    #[inline]
    pub(crate) fn resume(&mut self) {
        if self.waited {
            self.since = LOST.load(Ordering::Relaxed);
        }
    }

    /// Looks after a poll at which the attempt was pending.
    pub(crate) fn pause(&mut self) {
        self.found = self.found();
        self.waited = true;
    }

    /// Notes whether there was such a call before the look began.
    pub(crate) const fn note(&mut self, found: bool) {
        self.found = found;
    }

    /// Returns whether the attempt is a retry that has not waited for anything.
    #[inline]
    pub(crate) const fn is_idle_retry(&self) -> bool {
        self.retry && !self.waited
    }

    /// Returns whether there was such a call, until now.
    #[inline]
    pub(crate) fn found(&self) -> bool {
        self.found || LAST_LOST.get() > self.since
    }
}

/// See [`Watch::once`].
pub(crate) struct Once<'f, F> {
    future: Pin<&'f mut F>,
    retry: bool,
}

impl<F: Future> Future for Once<'_, F> {
    type Output = Poll<F::Output>;

    // The compiler does not inline `poll_fn` where it deems a retry unlikely.
    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future, retry } = &mut *self;
        Poll::Ready(match retry {
            true => inside(true, || future.as_mut().poll(cx)),
            false => future.as_mut().poll(cx),
        })
    }
}

/// Runs code as if no call were around it, and leaves no trace for one.
pub(crate) fn outside<T>(code: impl FnOnce() -> T) -> T {
    struct Restore(bool, u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            IN_RETRY.set(self.0);
            LAST_LOST.set(self.1);
        }
    }
    let _restore = Restore(IN_RETRY.replace(false), LAST_LOST.get());
    code()
}

/// Returns whether a call that runs here is inside a retry of another one.
#[inline]
pub(crate) fn is_inside_retry() -> bool {
    IN_RETRY.get()
}

/// Makes an attempt or a part of it, and notes if it is a retry.
#[inline(always)]
pub(crate) fn inside<T>(retry: bool, attempt: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        #[inline(always)]
        fn drop(&mut self) {
            IN_RETRY.set(self.0);
        }
    }
    let before = IN_RETRY.get();
    IN_RETRY.set(before || retry);
    let _restore = Restore(before);
    attempt()
}
