//! A condition that a retry has to meet.

use std::fmt;
use std::sync::Arc;

use super::{Gate, Gated};
use crate::failure::Failure;
use crate::request::Request;
use crate::strategy::{Cause, Refusal};

/// See [`StrategyExt::when`](crate::StrategyExt::when).
pub type When<S> = Gated<S, Condition>;

type Predicate = dyn Fn(&Request<'_>, &Failure) -> bool + Send + Sync;

/// Retries only if a predicate returns true. The predicate must have no side effects,
/// because explanations call it too.
#[derive(Clone)]
pub struct Condition(Arc<Predicate>);

impl Condition {
    /// Makes a condition of a predicate.
    pub fn new<P>(predicate: P) -> Self
    where
        P: Fn(&Request<'_>, &Failure) -> bool + Send + Sync + 'static,
    {
        Self(Arc::new(predicate))
    }
}

impl Gate for Condition {
    fn refuses(&self, _: u32, request: &Request<'_>, failure: &Failure) -> Option<Refusal> {
        (!(self.0)(request, failure)).then(|| Refusal::new(Cause::Declined))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("where a condition holds")
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").finish_non_exhaustive()
    }
}
