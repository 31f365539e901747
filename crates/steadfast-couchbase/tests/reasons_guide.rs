//! The guide on reasons says of each what the code says.

use steadfast::Reason;
use steadfast_couchbase::explain::about;
use steadfast_couchbase::reason;

const GUIDE: &str = include_str!("../../../docs/couchbase-reasons.md");

#[test]
fn the_guide_has_a_row_for_every_reason_with_its_flags_and_advice() {
    let retried = |reason: &Reason| match (reason.always_retry(), reason.never_retry()) {
        (true, _) => "always",
        (_, true) => "never",
        _ if reason.allows_non_idempotent_retry() => "any request",
        _ => "if idempotent",
    };
    let rows: Vec<String> = reason::ALL
        .iter()
        .chain(&reason::BEYOND_RFC)
        .map(|reason| {
            let about = about(reason).unwrap();
            let (meaning, advice) = (about.meaning, about.advice);
            format!(
                "| `{reason}` | {meaning} | {} | {advice} |",
                retried(reason)
            )
        })
        .collect();
    let found: Vec<&str> = GUIDE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(found, rows, "the rows should be\n{}", rows.join("\n"));
}
