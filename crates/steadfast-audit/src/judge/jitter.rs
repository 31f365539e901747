//! Decides whether the clients of a fleet retry at the same time.
//!
//! Several commands meet the same fault at once. Without jitter their delays agree, up to the
//! noise of the machine: a busy machine delays some of them. So three quarters of the delays of
//! a retry must lie close together, and that for every retry that was long enough to tell.
//! A client that draws its delays from a range of 100 ms is taken for one without jitter in about
//! one of twenty fleets if it retries once, and hardly ever if it retries twice.

use std::time::Duration;

/// Delays of clients without jitter lie closer together than this.
const CLOSE: Duration = Duration::from_millis(20);
/// Shorter delays cannot be told from the noise of the machine.
const SHORTEST: Duration = Duration::from_millis(200);

/// Returns the number and the delay of the longest retry, if the commands have no jitter.
pub(super) fn equal_delay(commands: &[Vec<Duration>]) -> Option<(usize, Duration)> {
    let retries = commands.iter().map(Vec::len).max()?;
    let majority = (commands.len() * 3).div_ceil(4);
    let mut longest = None;
    for retry in 0..retries {
        let mut delays: Vec<Duration> = commands
            .iter()
            .filter_map(|delays| delays.get(retry).copied())
            .collect();
        delays.sort_unstable();
        let Some(median) = delays.get(delays.len() / 2).copied() else {
            continue;
        };
        if median < SHORTEST || delays.len() < majority {
            continue;
        }
        let spread = delays
            .windows(majority)
            .map(|window| window[majority - 1] - window[0])
            .min()?;
        if spread > CLOSE.min(median / 25) {
            return None;
        }
        longest = longest.max(Some((median, retry + 1)));
    }
    longest.map(|(delay, retry)| (retry, delay))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(delays: &[&[u64]]) -> Vec<Vec<Duration>> {
        let millis = |delays: &&[u64]| delays.iter().copied().map(Duration::from_millis).collect();
        delays.iter().map(millis).collect()
    }

    #[test]
    fn equal_delays_are_found_in_noise() {
        let noisy = fleet(&[
            &[1001, 2003],
            &[1002, 2001],
            &[1000, 2002],
            &[1004, 2090],
            &[1003, 2004],
            &[1100, 2006],
            &[1001, 2002],
            &[1230, 2003],
        ]);
        assert_eq!(equal_delay(&noisy), Some((2, Duration::from_millis(2003))));
    }

    #[test]
    fn jitter_of_ten_per_cent_is_jitter() {
        let jittered = fleet(&[
            &[900],
            &[930],
            &[960],
            &[990],
            &[1020],
            &[1050],
            &[1080],
            &[1100],
        ]);
        assert_eq!(equal_delay(&jittered), None);
    }

    #[test]
    fn jitter_of_some_milliseconds_is_jitter() {
        let short = [1005, 1012, 1019, 1026, 1033, 1040, 1047, 1054].map(|delay| [delay]);
        let short: Vec<&[u64]> = short.iter().map(|delay| &delay[..]).collect();
        assert_eq!(equal_delay(&fleet(&short)), None);
    }

    #[test]
    fn one_jittered_retry_is_enough() {
        let mixed = fleet(&[&[1000, 1900], &[1000, 2100], &[1000, 2300], &[1000, 2500]]);
        assert_eq!(equal_delay(&mixed), None);
    }

    #[test]
    fn short_delays_are_not_judged() {
        assert_eq!(equal_delay(&fleet(&[&[100], &[100], &[100], &[100]])), None);
        assert_eq!(equal_delay(&fleet(&[&[], &[], &[], &[]])), None);
    }
}
