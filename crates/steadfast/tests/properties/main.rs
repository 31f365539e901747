//! Properties that hold for any strategy, any request and any sequence of failures.
//!
//! Every test draws its cases from one seed, so that a run can be repeated:
//! `PROPTEST_RNG_SEED` and `PROPTEST_CASES` choose others.

mod accounting;
mod agreement;
mod bounds;
mod budgets;
mod deadline;
mod failures;
mod reading;
mod safety;
mod scripts;
mod simulation;
mod strategies;

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A fixed seed unless one is asked for: a property that fails does so on
/// every machine, every time.
#[expect(
    clippy::print_stdout,
    reason = "the seed belongs into the output of a test that fails"
)]
pub(crate) fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => 0x5EED,
    };
    config.rng_seed = RngSeed::Fixed(seed);
    println!("seed: repeat with PROPTEST_RNG_SEED={seed}");
    config
}

/// For cases that are made of many requests, and so take longer.
pub(crate) fn config_for_many() -> ProptestConfig {
    let config = config();
    ProptestConfig {
        cases: config.cases.div_ceil(4),
        ..config
    }
}

/// Durations of every size that matters to a request, nothing included.
pub(crate) fn durations() -> BoxedStrategy<Duration> {
    prop_oneof![
        1 => Just(0),
        1 => 1..1_000u64,
        3 => 1_000..10_000_000u64,
        5 => 10_000_000..10_000_000_000u64,
        2 => 10_000_000_000..3_600_000_000_000u64,
        2 => 3_600_000_000_000..7_200_000_000_000u64,
    ]
    .prop_map(Duration::from_nanos)
    .boxed()
}

/// The same without nothing.
pub(crate) fn lengths() -> BoxedStrategy<Duration> {
    durations()
        .prop_map(|duration| duration.max(Duration::from_nanos(1)))
        .boxed()
}
