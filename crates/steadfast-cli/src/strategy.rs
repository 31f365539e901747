//! The strategies by the names that the command line has for them.

use std::sync::Arc;

use clap::ValueEnum;
use steadfast::FailFast;
use steadfast::{Adaptive, BestEffort, RetryStrategy, Standard, WhenLimited};
use steadfast_couchbase::{ErrorMapDirected, fast_fail_on_terminal_errors};

/// A strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyName {
    /// Best effort, but giving up at once on wrong credentials, certificates, buckets, scopes and collections
    FastFail,
    /// Whatever is lawful, after 1, 2, 4, … 500 ms, until the deadline
    BestEffort,
    /// Smithy's guidance: five attempts, full jitter, a budget
    #[value(alias = "standard")]
    Guidance,
    /// The AWS SDKs' standard mode before 2.1: three attempts, a budget
    #[value(name = "aws-2.0")]
    Aws20,
    /// The AWS SDKs' standard mode, 2.1: three attempts, shorter delays, a budget
    #[value(name = "aws-2.1")]
    Aws21,
    /// Smithy's guidance with a send rate that follows the throttling
    Adaptive,
    /// Nothing but what is always retried
    FailFast,
    /// As the server's error map says, else best effort
    ErrorMap,
}

impl StrategyName {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn build(self) -> Arc<dyn RetryStrategy> {
        match self {
            Self::FastFail => Arc::new(fast_fail_on_terminal_errors()),
            Self::BestEffort => Arc::new(BestEffort::default()),
            Self::Guidance => Arc::new(Standard::guidance()),
            Self::Aws20 => Arc::new(Standard::aws_2_0()),
            Self::Aws21 => Arc::new(Standard::aws_2_1()),
            Self::Adaptive => Arc::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait)),
            Self::FailFast => Arc::new(FailFast::new()),
            Self::ErrorMap => Arc::new(ErrorMapDirected::default()),
        }
    }
}
