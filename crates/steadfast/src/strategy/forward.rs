//! Strategies behind a pointer.

use std::sync::Arc;

use super::{Admission, Decision, Ending, Refusal, RetryStrategy, RetryToken, StrategyInfo};
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

macro_rules! forward {
    ($(impl[$($generics:tt)+] $pointer:ty;)+) => {$(
        impl<$($generics)+> RetryStrategy for $pointer {
            fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Admission {
                (**self).acquire_initial_token(request, world)
            }

            fn refresh_retry_token(
                &self,
                token: RetryToken,
                request: &Request<'_>,
                failure: &Failure,
                world: &dyn World,
            ) -> Decision {
                (**self).refresh_retry_token(token, request, failure, world)
            }

            fn record_success(
                &self,
                token: Option<RetryToken>,
                world: &dyn World,
            ) -> Result<(), Refusal> {
                (**self).record_success(token, world)
            }

            fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
                (**self).record_end(token, ending, world);
            }

            fn info(&self) -> &dyn StrategyInfo {
                (**self).info()
            }
        }
    )+};
}

forward! {
    impl[S: RetryStrategy + ?Sized] &S;
    impl[S: RetryStrategy + ?Sized] Arc<S>;
    impl[S: RetryStrategy + ?Sized] Box<S>;
    impl['a] AnyStrategy<'a>;
}

/// A strategy that is borrowed or shared.
///
/// For a client that has a strategy, and whose requests may bring their own. A request
/// without its own borrows that of the client. To share it would count its users, in a
/// place that all threads write to.
///
/// ```
/// use std::sync::Arc;
/// use steadfast::strategy::{AnyStrategy, FailFast, Standard};
///
/// let of_client = Standard::guidance();
/// let usual = AnyStrategy::Borrowed(&of_client);
/// let special = AnyStrategy::Shared(Arc::new(FailFast::new()));
/// ```
#[derive(Clone)]
pub enum AnyStrategy<'a> {
    /// A strategy of someone else.
    Borrowed(&'a dyn RetryStrategy),
    /// A strategy with several owners.
    Shared(Arc<dyn RetryStrategy>),
}

impl<'a> std::ops::Deref for AnyStrategy<'a> {
    type Target = dyn RetryStrategy + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(strategy) => *strategy,
            Self::Shared(strategy) => &**strategy,
        }
    }
}

impl std::fmt::Debug for AnyStrategy<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Borrowed(_) => "Borrowed",
            Self::Shared(_) => "Shared",
        })
    }
}
