//! Rates an SDK in a case: by the cluster first, by what the SDK says second.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::cases::SdkCase;
use super::driver::DriverAnswer;
use crate::report::show;

/// How much later than its timeout an operation may end.
const LATENESS: Duration = Duration::from_millis(700);

/// How an SDK did in a case, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SdkRating {
    /// A write was applied twice, was sent again although it may have been applied, or was
    /// reported as not applied although it was.
    Unsafe,
    /// The behaviour is another one than the RFC's.
    Differs,
    /// The driver has no such operation, or the fault was not met.
    NotSeen,
    /// The behaviour is the RFC's.
    Conforms,
}

impl SdkRating {
    /// Every rating, the most severe first.
    pub const ALL: [Self; 4] = [Self::Unsafe, Self::Differs, Self::NotSeen, Self::Conforms];
}

impl fmt::Display for SdkRating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unsafe => "unsafe",
            Self::Differs => "differs",
            Self::NotSeen => "not seen",
            Self::Conforms => "conforms",
        })
    }
}

/// What the cluster saw, and what the driver said.
#[derive(Clone, Debug)]
pub(super) struct SdkRun {
    /// When attempts arrived, since the command was sent.
    pub(super) arrivals: Vec<Duration>,
    /// How often the write was applied.
    pub(super) applied: usize,
    /// How many requests the fault hit.
    pub(super) hit: u64,
    pub(super) answer: DriverAnswer,
}

impl SdkRun {
    /// Nothing was sent: the driver could not connect.
    pub(super) fn unsent(answer: DriverAnswer) -> Self {
        Self {
            arrivals: Vec::new(),
            applied: 0,
            hit: 1,
            answer,
        }
    }
}

/// Rates a case, with the reason.
pub(super) fn judge(case: &SdkCase, run: &SdkRun) -> (SdkRating, String) {
    if run.answer.unsupported {
        return (
            SdkRating::NotSeen,
            "the driver has no such operation".to_owned(),
        );
    }
    if let Some(reason) = danger(case, run) {
        return (SdkRating::Unsafe, reason);
    }
    if run.hit == 0 {
        return (
            SdkRating::NotSeen,
            "the request did not meet the fault".to_owned(),
        );
    }
    match difference(case, run) {
        Some(reason) => (SdkRating::Differs, reason),
        None => (SdkRating::Conforms, String::new()),
    }
}

fn danger(case: &SdkCase, run: &SdkRun) -> Option<String> {
    let sent = run.arrivals.len();
    if run.applied > 1 {
        return Some(format!("applied {} times", run.applied));
    }
    if case.writes() && case.cuts() && sent > 1 {
        return Some(format!(
            "sent {sent} times, although it may have been applied"
        ));
    }
    let denied = run.answer.ambiguous == Some(false) && !run.answer.ok;
    (denied && run.applied > 0).then(|| {
        let error = run.answer.error.as_deref().unwrap_or("an error");
        format!("applied, and reported as not applied: {error}")
    })
}

fn difference(case: &SdkCase, run: &SdkRun) -> Option<String> {
    let expected = &case.expect;
    let sent = run.arrivals.len() as u64;
    let [least, most] = expected.sent;
    let error = run.answer.error.as_deref().unwrap_or("an error");
    if expected.ok.is_some_and(|ok| ok != run.answer.ok) {
        return Some(match run.answer.ok {
            true => format!("succeeded after {sent} attempts"),
            false => format!("failed after {}: {error}", attempts(sent)),
        });
    }
    if !(least..=most).contains(&sent) {
        let expected = match least == most {
            true if most == 1 => "1 is".to_owned(),
            true => format!("{most} are"),
            false => format!("{least} to {most} are"),
        };
        return Some(format!("{}, {expected} expected", attempts(sent)));
    }
    if let Some(applied) = expected.applied.filter(|applied| *applied != run.applied) {
        return Some(format!("applied {} times, not {applied}", run.applied));
    }
    if expected.unambiguous && run.answer.ambiguous == Some(true) {
        return Some(format!("nothing was sent, and it ended with {error}"));
    }
    if let Some((retry, at, least)) = early_retry(&expected.gaps_ms, &run.arrivals) {
        let at = show(at);
        return Some(format!(
            "retry {retry} came {at} after the command, {least} ms at least are expected"
        ));
    }
    let limit = Duration::from_millis(case.timeout_ms) + LATENESS;
    let limit = expected.within_ms.map_or(limit, Duration::from_millis);
    (run.answer.after > limit).then(|| format!("ended after {} ({error})", show(run.answer.after)))
}

/// Finds a retry that came before its delays together. Arrivals are noted late at times, and
/// never early, so only their distance from the command proves that one was early.
fn early_retry(gaps_ms: &[u64], arrivals: &[Duration]) -> Option<(usize, Duration, u64)> {
    let mut least = 0;
    let sums = gaps_ms.iter().map(|gap| {
        least += gap;
        least
    });
    let retries = arrivals.iter().skip(1).zip(sums).enumerate();
    let mut timed = retries.map(|(index, (at, least))| (index + 1, *at, least));
    timed.find(|(_, at, least)| at.as_millis() < u128::from(*least))
}

fn attempts(number: u64) -> String {
    match number {
        1 => "1 attempt".to_owned(),
        more => format!("{more} attempts"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::couchbase::cases::SdkCases;

    fn case(title: &str) -> SdkCase {
        let (_, cases) = SdkCases::load().list();
        cases
            .into_iter()
            .find(|case| case.title() == title)
            .unwrap()
    }

    fn run(arrivals: &[u64], applied: usize, ok: bool, ambiguous: Option<bool>) -> SdkRun {
        SdkRun {
            arrivals: arrivals
                .iter()
                .copied()
                .map(Duration::from_millis)
                .collect(),
            applied,
            hit: 1,
            answer: DriverAnswer {
                ok,
                ambiguous,
                ..DriverAnswer::default()
            },
        }
    }

    #[track_caller]
    fn assert_rated(title: &str, run: &SdkRun, rating: SdkRating) {
        let (rated, reason) = judge(&case(title), run);
        assert_eq!(rated, rating, "{title}: {reason}");
    }

    #[test]
    fn a_write_that_may_have_been_applied_is_not_sent_again() {
        for operation in ["upsert", "append", "increment", "mutate"] {
            let title = format!("{operation}: cut before applying");
            assert_rated(&title, &run(&[0, 5], 1, true, None), SdkRating::Unsafe);
            assert_rated(
                &title,
                &run(&[0], 0, false, Some(true)),
                SdkRating::Conforms,
            );
        }
        assert_rated(
            "get: cut before applying",
            &run(&[0, 5], 0, true, None),
            SdkRating::Conforms,
        );
        assert_rated(
            "get: cut before applying",
            &run(&[0], 0, false, None),
            SdkRating::Differs,
        );
    }

    #[test]
    fn a_write_that_was_applied_is_not_reported_as_not_applied() {
        let title = "upsert: cut after applying";
        assert_rated(title, &run(&[0], 1, false, Some(false)), SdkRating::Unsafe);
        assert_rated(title, &run(&[0], 1, false, None), SdkRating::Conforms);
    }

    #[test]
    fn delays_of_the_controlled_backoff_are_lower_bounds() {
        let title = "get: not my vbucket, always";
        assert_rated(
            title,
            &run(&[0, 1, 11, 61, 161, 661], 0, false, None),
            SdkRating::Conforms,
        );
        assert_rated(
            title,
            &run(&[0, 1, 11, 21, 31, 41], 0, false, None),
            SdkRating::Differs,
        );
    }

    #[test]
    fn what_could_not_connect_was_not_sent_and_is_not_ambiguous() {
        for name in ["wrong password", "a certificate that is not trusted"] {
            let title = format!("upsert: {name}");
            let failed = |ambiguous| run(&[], 0, false, ambiguous);
            assert_rated(&title, &failed(Some(false)), SdkRating::Conforms);
            assert_rated(&title, &failed(Some(true)), SdkRating::Differs);
            assert_rated(&title, &run(&[0], 1, true, None), SdkRating::Differs);
        }
    }

    #[test]
    fn what_was_not_met_is_not_judged() {
        let unmet = SdkRun {
            hit: 0,
            ..run(&[], 0, false, None)
        };
        assert_rated("get: cut mid-response", &unmet, SdkRating::NotSeen);
    }
}
