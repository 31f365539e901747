//! The strategies of the command line, by name.

use std::sync::Arc;

use clap::ValueEnum;
use steadfast::FailFast;
use steadfast::strategy::WhenLimited;
use steadfast::{Adaptive, BestEffort, RetryStrategy, Standard};
use steadfast_couchbase::{ErrorMapDirected, fast_fail_on_terminal_errors};

/// A strategy by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyName {
    /// Retry until the deadline, but stop at once for permanent causes: wrong credentials or
    /// certificate, missing bucket, scope or collection
    #[default]
    BestEffortUntilTerminal,
    /// Retry whatever is safe until the deadline, after 1, 2, 4, … 500 ms
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
    /// Smithy's guidance with a send rate that adapts to throttling
    Adaptive,
    /// Never retry, except for reasons that the protocol always retries
    NoRetry,
    /// Follow the server's error map; best effort where it says nothing
    ErrorMap,
}

impl StrategyName {
    /// Returns the name on the command line.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn build(self) -> Arc<dyn RetryStrategy> {
        match self {
            Self::BestEffortUntilTerminal => Arc::new(fast_fail_on_terminal_errors()),
            Self::BestEffort => Arc::new(BestEffort::default()),
            Self::Guidance => Arc::new(Standard::guidance()),
            Self::Aws20 => Arc::new(Standard::aws_2_0()),
            Self::Aws21 => Arc::new(Standard::aws_2_1()),
            Self::Adaptive => Arc::new(Adaptive::new(Standard::guidance(), WhenLimited::Wait)),
            Self::NoRetry => Arc::new(FailFast::new()),
            Self::ErrorMap => Arc::new(ErrorMapDirected::default()),
        }
    }
}

/// Returns the current name of a strategy that was renamed.
pub(crate) fn new_name(typed: &str) -> Option<&'static str> {
    match typed {
        "fast-fail" => Some("best-effort-until-terminal"),
        "fail-fast" => Some("no-retry"),
        "at-once" => Some("immediate"),
        _ => None,
    }
}
