//! Timers: worlds in which the async driver can wait.
//!
//! The engine needs two things of a runtime: the time, and a future that ends after a
//! delay. The default is tokio's timer (feature `tokio`). Any other executor works too:
//!
//! ```
//! use std::time::Duration;
//! use steadfast::{BestEffort, retry, world};
//!
//! # mod async_io { pub struct Timer; impl Timer { pub async fn after(_: std::time::Duration) {} } }
//! # async fn fetch() -> std::io::Result<&'static str> { Ok("value") }
//! # async fn example() -> Result<(), steadfast::Error<std::io::Error>> {
//! let value = retry(&BestEffort::default())
//!     .world(world::from_sleep(|delay| async_io::Timer::after(delay))) // smol
//!     .idempotent(true)
//!     .timeout(Duration::from_secs(2))
//!     .run(|_attempt| fetch())
//!     .await?;
//! # let _ = value;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Roll, SystemWorld, World, forward};

/// A world in which the async driver can wait.
///
/// A deadline and a wait are measured by the same clock: [`World::now`] and the sleeps
/// must agree.
#[diagnostic::on_unimplemented(
    message = "the async driver cannot wait in `{Self}`, which is no `Timer`",
    note = "enable steadfast's feature `tokio`, or pass the timer of your executor: `.world(steadfast::world::from_sleep(|delay| …))`"
)]
pub trait Timer: World {
    /// A wait. Its output is ignored.
    type Sleep: Future;

    /// Returns a future that ends after this time. Dropping it ends the wait.
    fn sleep(&self, delay: Duration) -> Self::Sleep;
}

/// Makes a world of a function that waits: with std's clock and this machine's random
/// source. The output of the function's future is ignored.
pub fn from_sleep<F, Fut>(sleep: F) -> FromSleep<F>
where
    F: Fn(Duration) -> Fut,
    Fut: Future,
{
    FromSleep { sleep }
}

/// See [`from_sleep`].
#[derive(Clone, Copy)]
pub struct FromSleep<F> {
    sleep: F,
}

impl<F> World for FromSleep<F> {
    #[expect(clippy::disallowed_methods, reason = "this is a world of a driver")]
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn roll(&self) -> Roll {
        SystemWorld.roll()
    }
}

impl<F, Fut> Timer for FromSleep<F>
where
    F: Fn(Duration) -> Fut,
    Fut: Future,
{
    type Sleep = Fut;

    fn sleep(&self, delay: Duration) -> Fut {
        (self.sleep)(delay)
    }
}

impl<F> fmt::Debug for FromSleep<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromSleep").finish_non_exhaustive()
    }
}

/// Any timer, behind a pointer. For settings that many requests share. Clones are cheap
/// and are the same world.
#[derive(Clone)]
pub struct SharedWorld(Arc<dyn Timer<Sleep = BoxSleep> + Send + Sync>);

type BoxSleep = Pin<Box<dyn Future<Output = ()> + Send>>;

impl SharedWorld {
    /// Shares a timer.
    pub fn new<W>(world: W) -> Self
    where
        W: Timer<Sleep: Send + 'static> + Send + Sync + 'static,
    {
        Self(Arc::new(Boxing(world)))
    }
}

impl fmt::Debug for SharedWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWorld").finish_non_exhaustive()
    }
}

/// A timer whose sleeps are boxed.
struct Boxing<W>(W);

impl<W: Timer<Sleep: Send + 'static>> Timer for Boxing<W> {
    type Sleep = BoxSleep;

    fn sleep(&self, delay: Duration) -> BoxSleep {
        let sleep = self.0.sleep(delay);
        Box::pin(async move {
            sleep.await;
        })
    }
}

impl<W: World> World for Boxing<W> {
    forward!(self => self.0);
}

impl World for SharedWorld {
    forward!(self => self.0);
}

impl Timer for SharedWorld {
    type Sleep = BoxSleep;

    fn sleep(&self, delay: Duration) -> BoxSleep {
        self.0.sleep(delay)
    }
}

impl<W: World + ?Sized> World for &W {
    forward!(self => **self);
}

impl<W: Timer + ?Sized> Timer for &W {
    type Sleep = W::Sleep;

    fn sleep(&self, delay: Duration) -> W::Sleep {
        (**self).sleep(delay)
    }
}

impl<W: World + ?Sized> World for Arc<W> {
    forward!(self => **self);
}

impl<W: Timer + ?Sized> Timer for Arc<W> {
    type Sleep = W::Sleep;

    fn sleep(&self, delay: Duration) -> W::Sleep {
        (**self).sleep(delay)
    }
}
