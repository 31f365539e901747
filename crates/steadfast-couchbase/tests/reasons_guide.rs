//! The guide on reasons says of each what the code says.

use steadfast_couchbase::explain::about;
use steadfast_couchbase::reason;

const GUIDE: &str = include_str!("../../../docs/couchbase-reasons.md");

#[test]
fn the_guide_has_a_row_for_every_reason_with_its_flags_and_advice() {
    let yes = |flag| if flag { "yes" } else { "no" };
    let rows: Vec<String> = reason::ALL
        .iter()
        .chain(&reason::BEYOND_RFC)
        .map(|reason| {
            let about = about(reason).unwrap();
            format!(
                "| `{reason}` | {} | {} | {} | {} |",
                about.meaning,
                yes(reason.allows_non_idempotent_retry()),
                yes(reason.always_retry()),
                about.advice,
            )
        })
        .collect();
    let found: Vec<&str> = GUIDE
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    assert_eq!(found, rows, "the rows should be\n{}", rows.join("\n"));
}
