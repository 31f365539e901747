//! Methods that several strategies share: those behind a pointer, and the engine's own.

use std::sync::Arc;

use super::{Answer, Decision, Ending, ForeignToken, RetryStrategy, RetryToken, StrategyInfo};
use crate::failure::Failure;
use crate::request::Request;
use crate::world::World;

/// The tokens of a strategy that only has to know its own.
macro_rules! own_tokens {
    () => {
        #[inline]
        fn acquire_initial_token(&self, _: &Request<'_>, _: &dyn World) -> Answer {
            Ok(RetryToken::initial(&self.id))
        }

        #[inline]
        fn record_success(&self, token: RetryToken, _: &dyn World) -> Result<(), ForeignToken> {
            token.check_issuer(&self.id)
        }

        #[inline]
        fn admits_without_token(&self) -> bool {
            true
        }
    };
}

/// The refresh of a strategy that grants or refuses at once.
macro_rules! own_refresh {
    () => {
        #[inline]
        fn refresh_retry_token(
            &self,
            mut token: RetryToken,
            request: &Request<'_>,
            failure: &Failure,
            world: &dyn World,
        ) -> Decision {
            let granted = self.grant(&mut token, request, failure, world);
            granted.map(|()| token).into()
        }

        #[inline]
        fn refresh_in_place(
            &self,
            token: &mut Option<RetryToken>,
            request: &Request<'_>,
            failure: &Failure,
            world: &dyn World,
        ) -> Option<Box<Decision>> {
            let granted = match token {
                Some(token) => self.grant(token, request, failure, world),
                None => Err(Refusal::new(Cause::NoToken)),
            };
            match granted {
                Ok(()) => None,
                Err(refusal) => {
                    *token = None;
                    Some(Box::new(refusal.into()))
                }
            }
        }
    };
}

/// For the engine's own strategies, which run no code of a user before the first failure.
macro_rules! own_info {
    () => {
        #[inline]
        fn is_plain(&self) -> bool {
            true
        }

        fn info(&self) -> &dyn StrategyInfo {
            self
        }
    };
}

pub(super) use {own_info, own_refresh, own_tokens};

macro_rules! forward {
    ($(impl[$($generics:tt)+] $pointer:ty;)+) => {$(
        impl<$($generics)+> RetryStrategy for $pointer {
            #[inline]
            fn acquire_initial_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
                (**self).acquire_initial_token(request, world)
            }

            #[inline]
            fn refresh_retry_token(
                &self,
                token: RetryToken,
                request: &Request<'_>,
                failure: &Failure,
                world: &dyn World,
            ) -> Decision {
                (**self).refresh_retry_token(token, request, failure, world)
            }

            #[inline]
            fn record_success(
                &self,
                token: RetryToken,
                world: &dyn World,
            ) -> Result<(), ForeignToken> {
                (**self).record_success(token, world)
            }

            #[inline]
            fn refresh_in_place(
                &self,
                token: &mut Option<RetryToken>,
                request: &Request<'_>,
                failure: &Failure,
                world: &dyn World,
            ) -> Option<Box<Decision>> {
                (**self).refresh_in_place(token, request, failure, world)
            }

            #[inline]
            fn record_success_in_place(&self, token: &mut Option<RetryToken>, world: &dyn World) {
                (**self).record_success_in_place(token, world);
            }

            fn record_end(&self, token: RetryToken, ending: Ending<'_>, world: &dyn World) {
                (**self).record_end(token, ending, world);
            }

            #[inline]
            fn is_plain(&self) -> bool {
                (**self).is_plain()
            }

            #[inline]
            fn admits_without_token(&self) -> bool {
                (**self).admits_without_token()
            }

            #[inline]
            fn deferred_token(&self, request: &Request<'_>, world: &dyn World) -> Answer {
                (**self).deferred_token(request, world)
            }

            #[inline]
            fn record_first_success(&self) {
                (**self).record_first_success();
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

    #[inline]
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
