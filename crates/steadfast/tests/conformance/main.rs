//! Checks `docs/conformance.md`, and that every law has a test.
//!
//! The page names the test of each statement. These checks fail if a named file or test
//! does not exist, if a count is wrong, or if no row mentions a decision. Each check is
//! shown to fail below, on a small page with one error in it.

mod check;
mod laws;
mod page;
mod pin;

use std::fs;
use std::path::Path;

use check::problems;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_conformance_page_says_what_is_true() {
    let problems = problems(
        &read("docs/conformance.md"),
        &read("docs/decisions.md"),
        root(),
    );
    assert!(
        problems.is_empty(),
        "{} problems in docs/conformance.md\n  {}",
        problems.len(),
        problems.join("\n  ")
    );
}

const DECISIONS: &str = "| D1 | a | b |\n| D2 | c | d |\n";
const TEST: &str = "`crates/steadfast/src/law.rs#an_error_that_says_no_beats_everything`";

/// A page without problems, but for what `change` does to it.
fn damaged(change: impl Fn(&str) -> String) -> Vec<String> {
    let page = format!(
        "# Conformance

## Summary

| document | done | gap | rows |
|---|---|---|---|
| RFC 0049 rev 16 | 1 | 1 | 2 |
| RFC 0005 | 0 | 0 | 0 |
| RFC 0013 | 0 | 0 | 0 |
| Smithy client guidance | 1 | 0 | 1 |
| all | 2 | 1 | 3 |

## RFC 0049

| id | statement | decisions | where | tests | state |
|---|---|---|---|---|---|
| 0049-orch-1 | first | D1 | `crates/steadfast/src/law.rs` | {TEST} | done |
| 0049-orch-2 | second | D1, D2 | | | gap: the client is not built yet |

## Smithy

| id | statement | decisions | where | tests | state |
|---|---|---|---|---|---|
| smithy-1 | third | | `crates/steadfast/src/strategy/token.rs` | `crates/steadfast/src/strategy/token.rs#example:RetryToken` | done |
"
    );
    problems(&change(&page), DECISIONS, root())
}

fn replaced(old: &'static str, new: &'static str) -> Vec<String> {
    damaged(|page| {
        assert!(page.contains(old), "{old:?} is not on the page");
        page.replacen(old, new, 1)
    })
}

/// There is this one problem and no other.
#[track_caller]
fn only(problems: Vec<String>, words: &[&str]) {
    assert_eq!(problems.len(), 1, "{problems:#?}");
    among(problems, words);
}

/// There is this problem, with whatever follows from it.
#[track_caller]
fn among(problems: Vec<String>, words: &[&str]) {
    let has_all = |problem: &String| words.iter().all(|word| problem.contains(word));
    assert!(problems.iter().any(has_all), "{words:?}: {problems:#?}");
}

#[test]
fn a_page_without_problems_has_none() {
    assert_eq!(replaced("first", "1st"), [""; 0]);
}

#[test]
fn a_test_that_does_not_exist_is_named_with_its_row() {
    only(
        replaced("an_error_that_says_no", "an_error_that_says_yes"),
        &["0049-orch-1", "an_error_that_says_yes", "no such test"],
    );
}

#[test]
fn a_test_file_that_does_not_exist_is_named_with_its_row() {
    only(
        replaced("law.rs#", "lore.rs#"),
        &["0049-orch-1", "lore.rs", "cannot be read"],
    );
}

#[test]
fn a_function_that_is_no_test_pins_nothing() {
    only(
        replaced("#an_error_that_says_no_beats_everything", "#lawful"),
        &["0049-orch-1", "lawful", "not a test"],
    );
}

#[test]
fn a_doc_example_that_does_not_exist_is_named_with_its_row() {
    only(
        replaced("example:RetryToken", "example:StrategyId"),
        &["smithy-1", "StrategyId", "no example"],
    );
}

#[test]
fn a_source_path_that_does_not_exist_is_named_with_its_row() {
    only(
        replaced(
            "`crates/steadfast/src/law.rs` |",
            "`crates/steadfast/src/lore.rs` |",
        ),
        &["0049-orch-1", "lore.rs", "does not exist"],
    );
}

#[test]
fn an_id_that_is_used_twice_is_named() {
    only(
        replaced("0049-orch-2", "0049-orch-1"),
        &["0049-orch-1", "twice"],
    );
}

#[test]
fn a_hole_in_the_numbers_is_named() {
    only(
        replaced("0049-orch-2", "0049-orch-3"),
        &["0049-orch-3", "0049-orch-2"],
    );
}

#[test]
fn an_id_of_no_document_is_named() {
    among(
        replaced("| smithy-1 |", "| smitty-1 |"),
        &["smitty-1", "no document"],
    );
}

#[test]
fn done_without_a_test_is_a_claim() {
    only(
        damaged(|page| page.replace(TEST, "")),
        &["0049-orch-1", "done", "no test"],
    );
}

#[test]
fn done_without_a_place_is_a_claim() {
    only(
        replaced("`crates/steadfast/src/strategy/token.rs` |", " |"),
        &["smithy-1", "done", "no source"],
    );
}

#[test]
fn a_gap_says_why() {
    only(
        replaced("gap: the client is not built yet", "gap: later"),
        &["0049-orch-2", "why"],
    );
}

#[test]
fn a_state_is_done_or_a_gap() {
    among(
        replaced("| done |\n| 0049-orch-2", "| nearly |\n| 0049-orch-2"),
        &["0049-orch-1", "nearly"],
    );
}

#[test]
fn a_row_with_a_cell_too_few_is_named_with_its_line() {
    among(replaced("| second |", "|"), &["line 18", "6 cells"]);
}

#[test]
fn a_count_that_is_wrong_is_put_right() {
    only(
        replaced(
            "| RFC 0049 rev 16 | 1 | 1 | 2 |",
            "| RFC 0049 rev 16 | 2 | 0 | 2 |",
        ),
        &["RFC 0049 rev 16", "| 1 | 1 | 2 |"],
    );
}

#[test]
fn a_document_without_counts_is_missed() {
    only(
        replaced("| RFC 0005 | 0 | 0 | 0 |\n", ""),
        &["RFC 0005", "| 0 | 0 | 0 |"],
    );
}

#[test]
fn a_decision_that_does_not_exist_is_named_with_its_row() {
    only(
        replaced("| D1, D2 |", "| D1, D2, D3 |"),
        &["0049-orch-2", "D3"],
    );
}

#[test]
fn a_decision_in_the_words_of_a_statement_must_exist_too() {
    only(
        replaced("| third |", "| third (D40) |"),
        &["smithy-1", "D40"],
    );
}

#[test]
fn a_decision_that_no_row_mentions_is_named() {
    only(
        replaced("| D1, D2 |", "| D1 |"),
        &["D2", "no row mentions it"],
    );
}

#[test]
fn a_hole_in_the_decisions_is_named() {
    let decisions = "| D1 | a | b |\n| D3 | c | d |\n";
    among(problems("", decisions, root()), &["D2", "D3"]);
}
