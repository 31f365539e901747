//! The rules: each returns how it was broken, or nothing.

use std::time::Duration;

use super::CaseRun;
use super::jitter::equal_delay;
use crate::cases::{Action, Applied, AuditCase, RetryValue, Times, is_idempotent};
use crate::command::ExitCause;
use crate::journal::HttpArrival;
use crate::report::show;

/// More attempts than this for one request have no bound that protects a server.
const MOST_ATTEMPTS: usize = 10;
/// Retries that follow each other faster, on average, have no backoff.
const NO_BACKOFF: Duration = Duration::from_millis(20);
/// How much earlier than asked a retry may come: timers and clocks are not exact.
const TOLERANCE: Duration = Duration::from_millis(50);

/// A request that is not idempotent arrived again after an attempt that may have been applied.
pub(super) fn unsafe_retry(case: &AuditCase, run: &CaseRun) -> Option<String> {
    run.by_command().find_map(|arrivals| {
        let applied = |one: &HttpArrival| {
            !one.failed || case.fault.applied == Applied::Perhaps && !one.unapplied
        };
        let mut pairs = arrivals.iter().enumerate().flat_map(|(index, first)| {
            let later = arrivals[index + 1..].iter();
            later.map(move |again| (*first, *again))
        });
        let (first, again) =
            pairs.find(|(first, again)| applied(first) && !may_follow(case, first, again))?;
        let method = again.method.as_deref().unwrap_or(&case.kind.method);
        let waited = match is_over(first, again) {
            true => format!("after {}", show(delay(first, again))),
            false => "before the first had ended".to_owned(),
        };
        let why = match (first.failed, &first.key, &again.key) {
            (false, ..) => ", and the first had succeeded",
            (true, Some(_), Some(_)) => ", with another Idempotency-Key",
            (true, Some(_), None) => ", without its Idempotency-Key",
            (true, None, _) => "",
        };
        Some(format!("{method} sent again {waited}{why}"))
    })
}

/// Decides whether a request does no harm after one that may have been applied.
fn may_follow(case: &AuditCase, first: &HttpArrival, again: &HttpArrival) -> bool {
    let is_repeatable = |arrival: &HttpArrival| match &arrival.method {
        Some(method) => is_idempotent(method),
        // It was not read.
        None => case.kind.is_idempotent(),
    };
    let same_key = first.key.is_some() && first.key == again.key;
    is_repeatable(first) || is_repeatable(again) || same_key
}

/// Retries without bound, backoff or jitter, while everything fails.
pub(super) fn storm(case: &AuditCase, run: &CaseRun) -> Option<String> {
    // A client that follows a redirect comes back at once, and may.
    if case.fault.action.redirects() || !matches!(case.times, Times::Always | Times::Fleet) {
        return None;
    }
    let busiest = run.by_command().max_by_key(Vec::len)?;
    let attempts = busiest.len();
    let (first, last) = (busiest.first()?.at, busiest.last()?.at);
    let took = last.saturating_sub(first);
    if attempts > 2 && took < NO_BACKOFF * u32::try_from(attempts - 1).unwrap_or(u32::MAX) {
        return Some(format!(
            "no backoff: {attempts} attempts within {}",
            show(took)
        ));
    }
    if attempts > MOST_ATTEMPTS {
        let within = show(took);
        return Some(format!(
            "no bound: {attempts} attempts within {within}, at most {MOST_ATTEMPTS} are expected"
        ));
    }
    if case.times != Times::Fleet {
        return None;
    }
    let (retry, same) = equal_delay(
        &run.by_command()
            .map(|arrivals| delays(&arrivals))
            .collect::<Vec<_>>(),
    )?;
    let commands = run.ends.len();
    Some(format!(
        "no jitter: retry {retry} of {commands} commands came after {}, so a fleet comes back as one",
        show(same)
    ))
}

/// A retry before the time that the server named.
pub(super) fn rude_retry(case: &AuditCase, run: &CaseRun) -> Option<String> {
    let least = case.fault.least_wait.filter(|wait| !wait.is_zero())?;
    run.by_command().find_map(|arrivals| {
        // Before the attempt was over, the client did not know what the server asks for.
        let mut pairs = arrivals
            .windows(2)
            .filter(|pair| pair[0].failed && is_over(pair[0], pair[1]));
        let early = pairs.find(|pair| delay(pair[0], pair[1]) + TOLERANCE < least)?;
        let waited = show(delay(early[0], early[1]));
        Some(format!(
            "came back after {waited}, the server asked for {} at least",
            show(least)
        ))
    })
}

/// The case showed nothing.
pub(super) fn not_seen(case: &AuditCase, run: &CaseRun) -> Option<String> {
    if run.ends.iter().any(|end| end.left_processes) {
        return Some(
            "left a process running, which was stopped: it may have come back later".to_owned(),
        );
    }
    let stopped = run.ends.iter().find(|end| end.cause == ExitCause::Stopped);
    if case.fault.action == Action::Refuse {
        return stopped.map(|end| format!("was stopped after {}", show(end.after)));
    }
    if run.arrivals.is_empty() {
        let ended = run
            .ends
            .first()
            .map_or_else(String::new, |end| end.to_string());
        return Some(format!("sent no request ({ended})"));
    }
    let stopped = stopped?;
    if case
        .fault
        .least_wait
        .is_some_and(|wait| wait > stopped.after)
    {
        return None;
    }
    let after = show(stopped.after);
    Some(match (case.fault.action, run.arrivals.last()) {
        (Action::StaySilent, Some(last)) if last.failed => {
            format!("has no timeout within {after}: it waited until it was stopped")
        }
        (_, Some(last)) if last.failed && run.arrivals.len() == 1 => {
            format!("had not come back when it was stopped after {after}")
        }
        (_, Some(last)) if last.failed => {
            format!("was still retrying when it was stopped after {after}")
        }
        _ => format!("had its response, and did not end until it was stopped after {after}"),
    })
}

/// The client did not survive a fault that one retry survives.
pub(super) fn early_end(case: &AuditCase, run: &CaseRun) -> Option<String> {
    let survivable = case.times == Times::Once && case.fault.retry == RetryValue::Helps;
    if !survivable || !case.is_safe_to_retry() || run.arrivals.iter().any(|one| !one.failed) {
        return None;
    }
    let after = run.ends.first().map(|end| show(end.after))?;
    Some(match case.fault.action {
        Action::Refuse => format!("gave up after {after}, before connections were accepted"),
        _ => "not sent again".to_owned(),
    })
}

/// Says what a client did that broke no rule.
pub(super) fn description(case: &AuditCase, run: &CaseRun) -> String {
    let succeeded = run.arrivals.iter().any(|arrival| !arrival.failed);
    let attempts = run
        .by_command()
        .map(|arrivals| arrivals.len())
        .max()
        .unwrap_or(0);
    let stopped = run.ends.iter().any(|end| end.cause == ExitCause::Stopped);
    match (succeeded, attempts) {
        _ if stopped => {
            "was still waiting, as the server asked for, when it was stopped".to_owned()
        }
        (true, 1) if case.fault.action == Action::Refuse => {
            "connected when it was possible".to_owned()
        }
        (true, 1) if case.fault.action == Action::Drip => {
            "waited for the whole response".to_owned()
        }
        (true, _) => "retried and succeeded".to_owned(),
        (false, 1) if case.is_safe_to_retry() => "not sent again".to_owned(),
        (false, 1) => "not sent again, because it may have been applied".to_owned(),
        (false, attempts) => format!("gave up after {attempts} attempts"),
    }
}

/// Returns the delays between the attempts of a command.
pub(crate) fn delays(arrivals: &[&HttpArrival]) -> Vec<Duration> {
    arrivals
        .windows(2)
        .map(|pair| delay(pair[0], pair[1]))
        .collect()
}

/// Decides whether an attempt was over when another one came.
fn is_over(before: &HttpArrival, after: &HttpArrival) -> bool {
    before.over.is_some_and(|over| over <= after.at)
}

/// Returns the time from the end of an attempt to the next one.
fn delay(before: &HttpArrival, after: &HttpArrival) -> Duration {
    after.at.saturating_sub(before.over.unwrap_or(before.at))
}
