//! Every law of `ARCHITECTURE.md` has a test that carries its number.

use std::fs;
use std::path::Path;

use crate::{read, root};

#[test]
fn every_law_has_a_test_with_its_number() {
    let mut sources = String::new();
    collect(&root().join("crates"), &mut sources);
    assert_eq!(
        laws_without_test(&read("ARCHITECTURE.md"), &sources),
        [0; 0]
    );
}

#[test]
fn a_law_without_a_test_is_found() {
    let page =
        "# A\n\n1. Not a law.\n\n## The laws\n\n1. One.\n2. Two.\n10. Ten.\n\n## B\n\n11. No.\n";
    let sources = "fn law_1_holds() {}\n fn law_10_holds() {}";
    assert_eq!(laws_without_test(page, sources), [2]);
    assert_eq!(laws_without_test(page, "fn law_10_holds() {}"), [1, 2]);
}

fn laws_without_test(page: &str, sources: &str) -> Vec<u32> {
    let (_, laws) = page
        .split_once("## The laws")
        .expect("the page has the laws");
    let laws = laws.split("\n## ").next().unwrap_or_default();
    let numbers: Vec<u32> = laws
        .lines()
        .filter_map(|line| line.split_once(". ")?.0.parse().ok())
        .collect();
    assert!(numbers.len() > 2, "the laws are a numbered list");
    let tested = |number: &u32| sources.contains(&format!("fn law_{number}_"));
    numbers
        .into_iter()
        .filter(|number| !tested(number))
        .collect()
}

/// Appends every Rust source below a folder.
fn collect(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).expect("the crates can be listed") {
        let path = entry.expect("the crates can be listed").path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            // This file has the names of tests that do not exist.
            if !path.ends_with("conformance/laws.rs") {
                *sources += &fs::read_to_string(&path).expect("sources are text");
            }
        }
    }
}
