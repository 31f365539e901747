//! Names and buckets of the client's metrics, for the recorder of an application.
//!
//! The client emits its metrics through the `metrics` facade, which has no buckets. A recorder
//! that is told none writes summaries, from which Prometheus cannot compute a percentile over
//! several processes. Give [`DURATION_BUCKETS`] to the recorder:
//!
//! ```text
//! PrometheusBuilder::new().set_buckets_for_metric(
//!     Matcher::Full(steadfast_couchbase::metrics::OPERATION_DURATION.into()),
//!     steadfast_couchbase::metrics::DURATION_BUCKETS,
//! )?
//! ```
//!
//! `docs/observability.md` lists the labels.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// The duration of operations in seconds (SDK RFC 0067).
pub const OPERATION_DURATION: &str = "db.client.operation.duration";

/// Upper bounds in seconds for [`OPERATION_DURATION`]: from 20 µs, a read on the same machine, to
/// the timeouts. Below a second, neighbours differ by at most two thirds, so a percentile does too.
pub const DURATION_BUCKETS: &[f64] = &[
    0.000_02, 0.000_03, 0.000_05, 0.000_07, // microseconds
    0.000_1, 0.000_15, 0.000_2, 0.000_3, 0.000_5, 0.000_7, // hundreds of microseconds
    0.001, 0.001_5, 0.002, 0.003, 0.005, 0.007, // milliseconds
    0.01, 0.015, 0.02, 0.03, 0.05, 0.07, // tens of milliseconds
    0.1, 0.15, 0.2, 0.3, 0.5, 0.7, // hundreds of milliseconds
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, // timeouts
];

/// The number of retries.
pub const RETRIES: &str = "couchbase.client.retries";
/// The number of operations that ended because a retry was refused.
pub const REFUSALS: &str = "couchbase.client.refusals";
/// The number of open key-value connections to a node.
pub const CONNECTIONS: &str = "couchbase.client.connections";
/// 1 while the circuit breaker of a node stops attempts.
pub const BREAKER_OPEN: &str = "couchbase.client.circuit_breaker.open";
/// The share of operations on a node that its brake sheds.
pub const SHEDDING: &str = "couchbase.client.brake.shedding";
/// The tokens in the budget of the client's strategy.
pub const BUDGET_LEVEL: &str = "couchbase.client.retry_budget.level";
/// The capacity of that budget.
pub const BUDGET_CAPACITY: &str = "couchbase.client.retry_budget.capacity";

/// Describes all metrics to the recorder.
pub(crate) fn describe() {
    describe_histogram!(
        OPERATION_DURATION,
        Unit::Seconds,
        "Duration of operations with all their attempts and waits"
    );
    describe_counter!(RETRIES, Unit::Count, "Retries that were made");
    describe_counter!(
        REFUSALS,
        Unit::Count,
        "Operations that ended because a retry was refused"
    );
    describe_gauge!(CONNECTIONS, "Open key-value connections to a node");
    describe_gauge!(
        BREAKER_OPEN,
        "1 while the circuit breaker of a node stops attempts"
    );
    describe_gauge!(
        SHEDDING,
        "Share of operations on a node that the client sheds"
    );
    describe_gauge!(BUDGET_LEVEL, "Tokens left in the retry budget");
    describe_gauge!(BUDGET_CAPACITY, "Capacity of the retry budget");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_and_are_fine_where_operations_are_fast() {
        for pair in DURATION_BUCKETS.windows(2) {
            let (low, high) = (pair[0], pair[1]);
            assert!(low < high);
            assert!(low >= 1.0 || high / low < 1.68, "{low} {high}");
        }
        assert!(DURATION_BUCKETS[0] <= 0.000_02);
        assert!(DURATION_BUCKETS.last().is_some_and(|last| *last >= 75.0));
    }
}
