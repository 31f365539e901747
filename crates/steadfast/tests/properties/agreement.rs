//! Law 4: whoever looks, at the events, the counters, the reasons or the
//! history, sees the same request.

use proptest::prelude::*;
use steadfast::Verdict;
use steadfast::reason::ReasonSet;
use steadfast::report::{History, Outcome};
use steadfast::strategy::Cause;
use steadfast::world::RecordedEvent;

use crate::config;
use crate::failures::failures;
use crate::scripts::scripts;
use crate::simulation::{Simulated, is_capped, is_retry, run};
use crate::strategies::strategies;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn attempts_retries_reasons_history_and_events_agree(
        strategy in strategies(),
        scripts in prop::collection::vec(scripts(failures()), 1..4),
        seed: u64,
    ) {
        let requests = run(&*strategy.build().strategy, &scripts, seed, |_, _, _| {});
        for simulated in &requests {
            the_events_tell_of_every_failure(simulated)?;
            the_report_tells_the_same(simulated)?;
        }
        let mut ids: Vec<u64> =
            requests.iter().filter_map(|simulated| Some(simulated.events.first()?.request_id)).collect();
        let requests = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), requests, "two requests with one number");
    }
}

fn the_events_tell_of_every_failure(simulated: &Simulated) -> Result<(), TestCaseError> {
    let mut retries = 0;
    for (place, event) in simulated.events.iter().enumerate() {
        prop_assert_eq!(
            event.attempt as usize,
            place + 1,
            "one event for each failure"
        );
        prop_assert_eq!(event.request_id, simulated.events[0].request_id);
        retries += u32::from(is_retry(event));
        // Counted before it is told, and told before the wait.
        prop_assert_eq!(event.retries, retries);
        prop_assert!(event.at >= simulated.attempts[place]);
    }
    for (event, start) in simulated
        .events
        .iter()
        .zip(simulated.attempts.iter().skip(1))
    {
        let Outcome::Retry {
            delay,
            capped: false,
        } = event.outcome
        else {
            return Err(TestCaseError::fail(format!("an attempt after {event:?}")));
        };
        if !simulated.script.woken_early {
            prop_assert_eq!(event.at + delay, *start);
        }
    }
    Ok(())
}

fn the_report_tells_the_same(simulated: &Simulated) -> Result<(), TestCaseError> {
    let Some(report) = simulated.report() else {
        return Ok(());
    };
    let events = &simulated.events;
    let waits = |event: &&RecordedEvent| is_retry(event) || is_capped(event);
    let waits: Vec<&RecordedEvent> = events.iter().filter(waits).collect();
    prop_assert_eq!(report.attempts() as usize, simulated.attempts.len());
    prop_assert_eq!(report.attempts() as usize, events.len());
    prop_assert_eq!(report.retries(), report.attempts().saturating_sub(1));

    let reasons: ReasonSet = waits.iter().map(|event| event.failure.reason).collect();
    prop_assert_eq!(
        report.reasons().counted().collect::<Vec<_>>(),
        reasons.counted().collect::<Vec<_>>()
    );

    the_history_tells_the_same(simulated, report.history())?;

    if simulated.was_cancelled() {
        prop_assert!(matches!(report.verdict(), Verdict::Failed(_)));
        return Ok(());
    }
    let last = events.last().map(|event| event.outcome);
    let refused_for = report.refusal().map(|refusal| refusal.cause());
    match last {
        Some(Outcome::Refused(cause)) => prop_assert_eq!(refused_for, Some(cause)),
        Some(Outcome::Retry { capped, .. }) => {
            prop_assert!(capped, "no attempt after a wait that was not cut short");
            prop_assert_eq!(refused_for, None);
            prop_assert!(report.verdict().is_timeout());
        }
        Some(Outcome::Undecided) => prop_assert!(false, "left undecided"),
        None => prop_assert!(
            report.verdict().is_timeout() || refused_for == Some(Cause::Deadline),
            "without any time"
        ),
    }
    if let (Some(elapsed), Some(_)) = (report.elapsed(), simulated.deadline) {
        prop_assert_eq!(elapsed, simulated.ended - simulated.script.starts);
    }
    Ok(())
}

/// Each attempt is in one record, with others that failed as it did, or between the
/// first eight and the last eight.
fn the_history_tells_the_same(
    simulated: &Simulated,
    history: History<'_>,
) -> Result<(), TestCaseError> {
    let omitted = history.omitted() as usize;
    prop_assert!(history.len() <= 16);
    prop_assert!(omitted == 0 || history.len() == 16);
    let mut told = 0;
    for (place, record) in history.records().enumerate() {
        if place == 8 {
            told += omitted;
        }
        let (first, last) = (told, told + record.times as usize - 1);
        let events = simulated.events.get(first..=last);
        for event in events.expect("no more attempts than there were") {
            prop_assert_eq!(record.failure.reason, event.failure.reason);
            prop_assert_eq!(record.failure.stage, event.failure.stage);
            prop_assert_eq!(record.failure.hint, event.failure.hint);
        }
        prop_assert_eq!(record.attempt, simulated.events[last].attempt);
        prop_assert_eq!(record.outcome, simulated.events[last].outcome);
        if simulated.deadline.is_some() {
            prop_assert_eq!(
                record.since,
                simulated.events[first].at - simulated.script.starts
            );
            prop_assert_eq!(
                record.at,
                simulated.events[last].at - simulated.script.starts
            );
        }
        told = last + 1;
    }
    prop_assert_eq!(told, simulated.events.len());
    Ok(())
}
