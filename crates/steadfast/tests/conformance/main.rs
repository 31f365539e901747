//! Checks `docs/conformance.md` and the rows in `docs/conformance/`, and that every law has a
//! test.
//!
//! A row names the tests of a statement, and a change that they notice. These checks fail if a
//! named file, test or change does not exist, if a count is wrong, or if no row mentions a
//! decision. Each check is shown to fail below, on two small documents with one error in them.

mod check;
mod laws;
mod pin;
mod rows;

use std::fs;
use std::path::Path;

use check::problems;
use rows::DOCUMENTS;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The texts of all TOML files of a folder.
fn read_all(folder: &str) -> String {
    let entries = fs::read_dir(root().join(folder)).expect("the folder can be listed");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let files = paths.filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files
        .map(|path| fs::read_to_string(path).expect("a readable file"))
        .collect()
}

#[test]
fn the_conformance_rows_say_what_is_true() {
    let documents = DOCUMENTS.map(|(name, _)| read(&format!("docs/conformance/{name}.toml")));
    let problems = problems(
        &documents,
        &read("docs/conformance.md"),
        &read("docs/decisions.md"),
        &read_all(".ci/bugs"),
        root(),
    );
    assert!(
        problems.is_empty(),
        "{} problems in docs/conformance.md and docs/conformance/\n  {}",
        problems.len(),
        problems.join("\n  ")
    );
}

const DECISIONS: &str = "| D1 | a | b |\n| D2 | c | d |\n";
const BUGS: &str = r#"
[law-ignored]
change = ["crates/steadfast/Cargo.toml", 'edition.workspace = true', 'edition = "2021"']
check = "steadfast --lib law::an_error_that_says_no_beats_everything"
"#;
const PAGE: &str = "
| document | rows | gaps | unit | socket | foreign peer | change |
|---|--:|--:|--:|--:|--:|--:|
| RFC 0049 rev 16 | 2 | 1 | 1 | 0 | 0 | 1 |
| RFC 0005 | 0 | 0 | 0 | 0 | 0 | 0 |
| RFC 0013 | 0 | 0 | 0 | 0 | 0 | 0 |
| Smithy client guidance | 1 | 0 | 1 | 0 | 0 | 1 |
| Decisions of this project | 0 | 0 | 0 | 0 | 0 | 0 |
| all | 3 | 1 | 2 | 0 | 0 | 2 |
";
const RFC: &str = r#"
title = "RFC 0049"

[0049-orch-1]
says = "first"
decisions = ["D1"]
code = ["crates/steadfast/src/law.rs"]
tests = ["crates/steadfast/src/law.rs#an_error_that_says_no_beats_everything"]
bug = "law-ignored"

[0049-orch-2]
says = "second"
decisions = ["D1", "D2"]
gap = "the client is not built yet"
"#;
const SMITHY: &str = r#"
title = "Smithy"

[smithy-1]
says = "third"
code = ["crates/steadfast/src/strategy/token.rs"]
tests = ["crates/steadfast/src/strategy/token.rs#example:RetryToken"]
change = ["crates/steadfast/Cargo.toml", 'name = "steadfast"', 'name = "s"']
"#;

/// The problems of rows and a page without problems, but for what is replaced in one of them.
fn replaced(old: &str, new: &str) -> Vec<String> {
    let mut left = 1;
    let mut replace = |text: &str| {
        let times = text.matches(old).count().min(left);
        left -= times;
        text.replacen(old, new, times)
    };
    let empty = String::new;
    let documents = [replace(RFC), empty(), empty(), replace(SMITHY), empty()];
    let (page, bugs) = (replace(PAGE), replace(BUGS));
    assert_eq!(left, 0, "{old:?} is nowhere");
    problems(&documents, &page, DECISIONS, &bugs, root())
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
fn intact_rows_have_no_problems() {
    assert_eq!(replaced("first", "1st"), [""; 0]);
}

/// A test for each damage: what is replaced by what, and the words of the problem.
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
        among ["0049-orch-1", "an_error_that_says_yes", "no such test"];
    a_test_file_that_does_not_exist_is_named_with_its_row:
        "law.rs#" => "lore.rs#", only ["0049-orch-1", "lore.rs", "cannot be read"];
    a_function_that_is_no_test_pins_nothing:
        "#an_error_that_says_no_beats_everything" => "#lawful",
        among ["0049-orch-1", "lawful", "not a test"];
    a_doc_example_that_does_not_exist_is_named_with_its_row:
        "example:RetryToken" => "example:StrategyId", only ["smithy-1", "StrategyId", "no example"];
    a_source_path_that_does_not_exist_is_named_with_its_row:
        "law.rs\"]" => "lore.rs\"]", only ["0049-orch-1", "lore.rs", "does not exist"];
    an_id_that_is_used_twice_is_named:
        "0049-orch-2" => "0049-orch-1", among ["0049.toml", "duplicate key"];
    a_hole_in_the_numbers_is_named:
        "0049-orch-2" => "0049-orch-3", only ["0049-orch-3", "0049-orch-2"];
    an_id_of_another_document_is_named:
        "[smithy-1]" => "[smitty-1]", among ["smitty-1", "does not belong"];
    done_without_a_place_is_a_claim:
        "code = [\"crates/steadfast/src/strategy/token.rs\"]\n" => "",
        only ["smithy-1", "done", "no source"];
    done_without_a_test_is_a_claim:
        "tests = [\"crates/steadfast/src/strategy/token.rs#example:RetryToken\"]\n" => "",
        among ["smithy-1", "done", "no test"];
    a_row_without_words_is_named:
        "says = \"second\"\n" => "", only ["0049-orch-2", "says nothing"];
    an_unknown_field_is_named_with_its_row:
        "gap =" => "gab =", among ["0049-orch-2", "gab"];
    a_field_of_the_wrong_type_is_named_with_its_row:
        "[\"D1\"]" => "\"D1\"", among ["0049-orch-1", "decisions", "type"];
    a_gap_says_why:
        "the client is not built yet" => "later", only ["0049-orch-2", "why"];
    a_planted_bug_that_does_not_exist_is_named_with_its_row:
        "law-ignored" => "law-forgotten", only ["0049-orch-1", "law-forgotten"];
    a_planted_bug_that_another_test_notices_is_named_with_its_row:
        "law::an_error_that_says_no_beats_everything" => "law::other",
        only ["0049-orch-1", "law-ignored", "other"];
    a_planted_bug_that_cannot_be_planted_is_named:
        "'edition.workspace = true'" => "'edition = 2018'", only ["law-ignored", "0 times"];
    a_planted_bug_without_a_change_is_named:
        "change = [\"crates/steadfast/Cargo.toml\", 'edition" => "changed = [\"crates/steadfast/Cargo.toml\", 'edition",
        only ["law-ignored", "no change"];
    a_change_that_cannot_be_made_is_named_with_its_row:
        "'name = \"steadfast\"'" => "'name = \"other\"'", only ["smithy-1", "0 times"];
    a_change_in_a_text_that_is_there_twice_is_named_with_its_row:
        "'name = \"steadfast\"'" => "'tokio'", only ["smithy-1", "not once"];
    a_change_without_a_new_text_is_named_with_its_row:
        ", 'name = \"s\"']" => "]", only ["smithy-1", "a new one"];
    a_count_that_is_wrong_is_put_right:
        "| RFC 0049 rev 16 | 2 | 1 |" => "| RFC 0049 rev 16 | 2 | 0 |",
        only ["RFC 0049 rev 16", "| 2 | 1 | 1 | 0 | 0 | 1 |"];
    a_document_without_counts_is_missed:
        "| RFC 0005 | 0 | 0 | 0 | 0 | 0 | 0 |\n" => "", only ["RFC 0005", "missing"];
    a_decision_that_does_not_exist_is_named_with_its_row:
        "\"D2\"]" => "\"D2\", \"D3\"]", only ["0049-orch-2", "D3"];
    a_decision_in_the_words_of_a_statement_must_exist_too:
        "third" => "third (D40)", only ["smithy-1", "D40"];
    a_decision_that_no_row_mentions_is_named:
        ", \"D2\"]" => "]", only ["D2", "no row mentions it"];
}

#[test]
fn decisions_out_of_order_are_named() {
    let decisions = "| D1 | a | b |\n| D3 | c | d |\n| D2 | e | f |\n";
    among(
        problems(&[], "", decisions, "", root()),
        &["D2 stands after D3"],
    );
}
