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
| Decisions of this project | 0 | 0 | 0 |
| all | 2 | 1 | 3 |

## RFC 0049

| id | statement | decisions | where | tests | level | state |
|---|---|---|---|---|---|---|
| 0049-orch-1 | first | D1 | `crates/steadfast/src/law.rs` | {TEST} | unit | done |
| 0049-orch-2 | second | D1, D2 | | | | gap: the client is not built yet |

## Smithy

| id | statement | decisions | where | tests | level | state |
|---|---|---|---|---|---|---|
| smithy-1 | third | | `crates/steadfast/src/strategy/token.rs` | `crates/steadfast/src/strategy/token.rs#example:RetryToken` | unit | done |
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
fn an_intact_page_has_no_problems() {
    assert_eq!(replaced("first", "1st"), [""; 0]);
}

/// A test for each damaged page: what is replaced by what, and the words of the problem.
macro_rules! damage {
    ($($test:ident: $old:literal => $new:literal, $check:ident $words:tt;)*) => {$(
        #[test]
        fn $test() {
            $check(replaced($old, $new), &$words);
        }
    )*};
}

damage! {
    a_test_that_does_not_exist_is_named_with_its_row:
        "an_error_that_says_no" => "an_error_that_says_yes",
        only ["0049-orch-1", "an_error_that_says_yes", "no such test"];
    a_test_file_that_does_not_exist_is_named_with_its_row:
        "law.rs#" => "lore.rs#", only ["0049-orch-1", "lore.rs", "cannot be read"];
    a_function_that_is_no_test_pins_nothing:
        "#an_error_that_says_no_beats_everything" => "#lawful",
        only ["0049-orch-1", "lawful", "not a test"];
    a_doc_example_that_does_not_exist_is_named_with_its_row:
        "example:RetryToken" => "example:StrategyId", only ["smithy-1", "StrategyId", "no example"];
    a_source_path_that_does_not_exist_is_named_with_its_row:
        "`crates/steadfast/src/law.rs` |" => "`crates/steadfast/src/lore.rs` |",
        only ["0049-orch-1", "lore.rs", "does not exist"];
    an_id_that_is_used_twice_is_named:
        "0049-orch-2" => "0049-orch-1", only ["0049-orch-1", "twice"];
    a_hole_in_the_numbers_is_named:
        "0049-orch-2" => "0049-orch-3", only ["0049-orch-3", "0049-orch-2"];
    an_id_of_no_document_is_named:
        "| smithy-1 |" => "| smitty-1 |", among ["smitty-1", "no document"];
    done_without_a_place_is_a_claim:
        "`crates/steadfast/src/strategy/token.rs` |" => " |",
        only ["smithy-1", "done", "no source"];
    a_level_that_no_test_of_the_row_has_is_named:
        "| unit | done |\n| 0049-orch-2" => "| socket | done |\n| 0049-orch-2",
        only ["0049-orch-1", "unit", "socket"];
    a_gap_says_why:
        "gap: the client is not built yet" => "gap: later", only ["0049-orch-2", "why"];
    a_state_is_done_or_a_gap:
        "| done |\n| 0049-orch-2" => "| nearly |\n| 0049-orch-2", among ["0049-orch-1", "nearly"];
    a_row_with_a_cell_too_few_is_named_with_its_line:
        "| second |" => "|", among ["line 19", "7 cells"];
    a_count_that_is_wrong_is_put_right:
        "| RFC 0049 rev 16 | 1 | 1 | 2 |" => "| RFC 0049 rev 16 | 2 | 0 | 2 |",
        only ["RFC 0049 rev 16", "| 1 | 1 | 2 |"];
    a_document_without_counts_is_missed:
        "| RFC 0005 | 0 | 0 | 0 |\n" => "", only ["RFC 0005", "| 0 | 0 | 0 |"];
    a_decision_that_does_not_exist_is_named_with_its_row:
        "| D1, D2 |" => "| D1, D2, D3 |", only ["0049-orch-2", "D3"];
    a_decision_in_the_words_of_a_statement_must_exist_too:
        "| third |" => "| third (D40) |", only ["smithy-1", "D40"];
    a_decision_that_no_row_mentions_is_named:
        "| D1, D2 |" => "| D1 |", only ["D2", "no row mentions it"];
}

#[test]
fn done_without_a_test_is_a_claim() {
    among(
        damaged(|page| page.replace(TEST, "")),
        &["0049-orch-1", "done", "no test"],
    );
}

#[test]
fn a_hole_in_the_decisions_is_named() {
    let decisions = "| D1 | a | b |\n| D3 | c | d |\n";
    among(problems("", decisions, root()), &["D2", "D3"]);
}
