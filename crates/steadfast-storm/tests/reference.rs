//! Published results. `steadfast storm verify` checks all of them.

use steadfast_storm::verify::{Check, Depth, verify};

fn assert_all_hold(checks: &[Check]) {
    let broken: Vec<String> = checks
        .iter()
        .filter(|check| !check.holds())
        .map(ToString::to_string)
        .collect();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    for line in checks.iter().map(ToString::to_string) {
        assert!(line.chars().count() <= 80, "too wide: {line}");
    }
}

#[test]
fn quick_results_are_as_published() {
    let checks = verify(Depth::Quick);
    assert!(checks.len() > 20);
    assert_all_hold(&checks);
}

#[test]
#[ignore = "takes minutes without optimization: `steadfast storm verify`"]
fn all_results_are_as_published() {
    assert_all_hold(&verify(Depth::Full));
}
