//! References of herds: clients that lose their connections at the same time.

use std::time::Duration;

use steadfast::{Backoff, Jitter};

use super::{Check, attempts_per_request, average, exponential, policy};
use crate::scenarios;

/// S7: seconds until all are connected, and attempts of a client.
pub(super) fn s7() -> Vec<Check> {
    let cases = [
        (
            "fixed 100 ms",
            Backoff::constant(Duration::from_millis(100)),
            10.0,
            92.0,
        ),
        ("controlled", Backoff::controlled(), 19.0, 19.6),
        (
            "exponential",
            exponential(100, 20_000, Jitter::None),
            341.0,
            15.7,
        ),
        ("equal", exponential(100, 20_000, Jitter::Equal), 18.8, 8.2),
        ("full", exponential(100, 20_000, Jitter::Full), 24.5, 8.6),
    ];
    let scenario = scenarios::s7_herd();
    let mut checks = Vec::new();
    for (name, backoff, seconds, attempts) in cases {
        let policy = policy(backoff);
        let found = average(&scenario, &policy, 3, |run| {
            run.recovered_after.unwrap_or(f64::INFINITY)
        });
        let label = format!("S7 {name}: seconds to connect all");
        checks.push(Check::new(label, seconds, found, seconds * 0.06));
        let found = average(&scenario, &policy, 3, attempts_per_request);
        let label = format!("S7 {name}: attempts of a client");
        checks.push(Check::new(label, attempts, found, attempts * 0.06));
    }
    checks.extend(reconnects());
    checks
}

/// The backoff for herds, whatever the outage lasts: everything is connected after 20 s,
/// with four attempts and one more for each 12 s of the outage, and at most twice the
/// connections that the server accepts.
fn reconnects() -> Vec<Check> {
    let policy = policy(Backoff::reconnect());
    let mut checks = Vec::new();
    for outage in [0.5, 2.0, 5.0, 7.0, 10.0, 30.0, 120.0] {
        let mut scenario = scenarios::s7_herd();
        scenario.faults[0].until = outage;
        scenario.duration = outage + 5.0;
        let label = |what| format!("S7 reconnect after {outage} s: {what}");
        let seconds = average(&scenario, &policy, 3, |run| {
            run.recovered_after.unwrap_or(f64::INFINITY)
        });
        checks.push(Check::at_most(
            label("seconds to connect all"),
            20.0,
            seconds,
        ));
        let attempts = average(&scenario, &policy, 3, attempts_per_request);
        checks.push(Check::at_most(
            label("attempts of a client"),
            4.0 + outage / 12.0,
            attempts,
        ));
        let peak = average(&scenario, &policy, 3, |run| {
            let after = (outage / scenario.bin) as usize;
            let bins = run.bins.get(after..).unwrap_or_default();
            let seconds = bins.windows((1.0 / scenario.bin) as usize);
            let dials = seconds.map(|bins| bins.iter().map(|bin| bin.attempts).sum::<u64>());
            dials.max().unwrap_or(0) as f64
        });
        checks.push(Check::at_most(
            label("connections in a second"),
            2000.0,
            peak,
        ));
    }
    checks
}
