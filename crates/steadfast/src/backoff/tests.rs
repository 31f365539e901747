use super::*;
use crate::world::VirtualWorld;

const MS: Duration = Duration::from_millis(1);

fn delays(backoff: &Backoff, retries: impl IntoIterator<Item = u32>) -> Vec<Duration> {
    let world = VirtualWorld::new();
    retries
        .into_iter()
        .map(|n| backoff.delay(n, &world))
        .collect()
}

#[test]
fn best_effort_waits_1_2_4_up_to_256_then_500_ms() {
    let expected: Vec<_> = [1, 2, 4, 8, 16, 32, 64, 128, 256, 500, 500]
        .map(|n| n * MS)
        .into();
    assert_eq!(delays(&Backoff::best_effort(), 0..11), expected);
}

#[test]
fn the_controlled_backoff_waits_1_10_50_100_500_then_1000_ms() {
    let expected: Vec<_> = [1, 10, 50, 100, 500, 1000, 1000].map(|n| n * MS).into();
    assert_eq!(delays(&Backoff::controlled(), 0..7), expected);
}

#[test]
fn any_attempt_number_ends_at_the_cap_without_overflow() {
    let cap = Duration::from_secs(20);
    let numbers = [35, 63, 64, 65, 100_000, u32::MAX];
    for backoff in [
        Backoff::exponential(Duration::from_nanos(1), cap).unwrap(),
        Backoff::exponential_by(7, Duration::from_nanos(1), cap).unwrap(),
        Backoff::exponential(Duration::from_secs(1), cap).unwrap(),
        Backoff::linear(Duration::ZERO, cap, cap).unwrap(),
    ] {
        let expected = vec![cap; numbers.len()];
        assert_eq!(delays(&backoff, numbers), expected[..], "{backoff}");
    }
}

#[test]
fn the_longest_durations_saturate() {
    let longest = Duration::from_nanos(u64::MAX);
    let backoff = Backoff::exponential(Duration::MAX, Duration::MAX).unwrap();
    assert_eq!(delays(&backoff, [0, 1, u32::MAX]), [longest; 3]);
}

#[test]
fn jitter_at_the_cap_stays_uniform_over_the_whole_range() {
    let cap = Duration::from_secs(20);
    let backoff = Backoff::exponential(Duration::from_secs(1), cap).unwrap();
    let world = VirtualWorld::new().seeded(4711);
    for (jitter, least) in [(Jitter::Full, Duration::ZERO), (Jitter::Equal, cap / 2)] {
        let backoff = backoff.clone().with_jitter(jitter);
        let mut buckets = [0u32; 10];
        for _ in 0..10_000 {
            let delay = backoff.delay(40, &world);
            assert!(delay >= least && delay < cap, "{delay:?}");
            let place = (delay - least).as_secs_f64() / (cap - least).as_secs_f64();
            buckets[(place * 10.0) as usize] += 1;
        }
        // Each tenth of the range holds a tenth of the delays, give or take
        // five standard deviations (√(10000·0.1·0.9) = 30).
        assert!(
            buckets.iter().all(|n| n.abs_diff(1000) < 150),
            "seed 4711: {buckets:?}"
        );
    }
}

#[test]
fn a_base_of_a_nanosecond_divides_by_nothing() {
    let backoff = Backoff::exponential(Duration::from_nanos(1), MS).unwrap();
    for jitter in [Jitter::None, Jitter::Full, Jitter::Equal] {
        let backoff = backoff.clone().with_jitter(jitter);
        assert!(backoff.delay(0, &VirtualWorld::new()) <= MS);
    }
}

#[test]
fn an_impossible_backoff_names_the_field_and_the_limit() {
    let text = |result: Result<Backoff, InvalidSetting>| result.unwrap_err().to_string();
    assert_eq!(
        text(Backoff::exponential(Duration::ZERO, MS)),
        "invalid retry setting: backoff.base is zero: it must be at least 1 ns"
    );
    assert_eq!(
        text(Backoff::exponential(2 * MS, MS)),
        "invalid retry setting: backoff.base is 2ms: it must be at most the cap of 1ms"
    );
    assert!(text(Backoff::exponential_by(1, MS, MS)).contains("backoff.factor is 1"));
    assert!(text(Backoff::linear(2 * MS, MS, MS)).contains("backoff.first"));
}

#[test]
fn a_cap_below_the_first_delay_shortens_that_too() {
    let cap = Duration::from_micros(3);
    for backoff in [
        Backoff::best_effort(),
        Backoff::controlled(),
        Backoff::constant(MS),
        Backoff::linear(MS, MS, 9 * MS).unwrap(),
        Backoff::custom(|retries| retries * MS + MS),
    ] {
        assert_eq!(
            delays(&backoff.with_cap(cap), [0, 5, u32::MAX >> 9]),
            [cap; 3]
        );
    }
}

/// Ten thousand clients dial a peer that accepts a thousand connections per second, after
/// an outage. Returns the seconds until all are connected, the dials of a client, and the
/// most dials in a second after the outage.
fn herd(outage: f64) -> (f64, f64, usize) {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    const CLIENTS: u32 = 10_000;
    const TO_ACCEPT: u64 = 1_000_000;
    const BACKLOG: u64 = 511;
    const CONNECT_TIMEOUT: u64 = 3_000_000_000;
    let (backoff, world) = (Backoff::reconnect(), VirtualWorld::new().seeded(7));
    let up_at = (outage * 1e9) as u64;
    let mut dials: BinaryHeap<_> = (0..CLIENTS).map(|client| Reverse((0, client, 0))).collect();
    let (mut dialled, mut accepted_at, mut after) = (0_u32, up_at, Vec::new());
    while let Some(Reverse((now, client, retries))) = dials.pop() {
        dialled += 1;
        let failed_at = if now < up_at {
            now
        } else {
            after.push(now);
            if accepted_at.saturating_sub(now) / TO_ACCEPT < BACKLOG {
                accepted_at = accepted_at.max(now) + TO_ACCEPT;
                continue;
            }
            now + CONNECT_TIMEOUT
        };
        let delay = backoff.delay(retries, &world);
        dials.push(Reverse((
            failed_at + delay.as_nanos() as u64,
            client,
            retries + 1,
        )));
    }
    let second = 1_000_000_000;
    let peak = after
        .iter()
        .enumerate()
        .map(|(first, at)| after[first..].partition_point(|other| *other < at + second));
    let seconds = (accepted_at - up_at) as f64 / 1e9;
    (
        seconds,
        f64::from(dialled) / f64::from(CLIENTS),
        peak.max().unwrap_or(0),
    )
}

#[test]
fn a_herd_that_reconnects_is_spread_whatever_the_outage_lasts() {
    for outage in [0.5, 1.0, 2.0, 5.0, 7.0, 10.0, 12.0, 20.0, 60.0, 120.0] {
        let (seconds, dials, peak) = herd(outage);
        assert!(seconds <= 20.0, "{outage} s: connected after {seconds} s");
        assert!(dials <= 4.0 + outage / 12.0, "{outage} s: {dials} dials");
        assert!(peak <= 2000, "{outage} s: {peak} dials in a second");
    }
}
