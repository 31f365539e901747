//! Describes a plan of delays in one line.

use std::time::Duration;

use steadfast::explain::{Plan, Planned};

use crate::duration::show;

/// The most delays that are listed.
const MAX_LISTED: usize = 12;

/// Lists the delays of a plan and how it ends; `None` if there is no retry.
pub(super) fn describe(plan: &Plan, timeout: Duration) -> Option<String> {
    let delays: Vec<(Duration, Duration)> = plan
        .rows()
        .iter()
        .filter_map(|row| match row.decided {
            Planned::Retry {
                shortest,
                longest,
                capped: false,
            } => Some((shortest, longest)),
            Planned::Retry { .. } | Planned::Refused(_) | Planned::Asks => None,
        })
        .collect();
    let last = plan.rows().last()?;
    if delays.is_empty() && !matches!(last.decided, Planned::Retry { .. }) {
        return None;
    }
    if delays.is_empty() {
        return Some(format!("none before the deadline ({})", show(timeout)));
    }
    // A delay that repeats does so until the end.
    let mut shown: Vec<(Duration, Duration)> = delays.clone();
    shown.dedup();
    shown.truncate(MAX_LISTED);
    let is_short = shown.len() < delays.len() || matches!(last.decided, Planned::Retry { .. });
    let jittered = shown.iter().any(|(shortest, longest)| shortest != longest);
    let mut text = list(&shown);
    let attempts = plan.rows().len();
    let ending = match last.decided {
        Planned::Refused(cause) => format!("then no retry: {cause}"),
        Planned::Retry { .. } | Planned::Asks if plan.verdict().is_some() => {
            let number = if jittered {
                "attempts or more"
            } else {
                "attempts at most"
            };
            format!(
                "until the deadline ({}: {attempts} {number})",
                show(timeout)
            )
        }
        Planned::Retry { .. } | Planned::Asks => {
            format!("and so on (more than {attempts} attempts)")
        }
    };
    text.push_str(if is_short { " … " } else { ", " });
    text.push_str(&ending);
    Some(text)
}

/// Joins delays, with one common unit if all are whole milliseconds.
fn list(delays: &[(Duration, Duration)]) -> String {
    let whole = |delay: &Duration| {
        *delay < Duration::from_secs(1) && delay.subsec_nanos().is_multiple_of(1_000_000)
    };
    if delays.iter().all(|(from, to)| from == to && whole(to)) {
        let numbers: Vec<_> = delays
            .iter()
            .map(|(_, to)| to.as_millis().to_string())
            .collect();
        return format!("{} ms", numbers.join(", "));
    }
    let each = |(from, to): &(Duration, Duration)| {
        if from == to {
            show(*to).to_string()
        } else {
            format!("{} to {}", show(*from), show(*to))
        }
    };
    delays.iter().map(each).collect::<Vec<_>>().join(", ")
}
