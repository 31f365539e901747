//! The commands of the guides, as a reader runs them one after the other.
//!
//! Of every guide each block marked `sh` is run, in order and in one directory; a
//! block marked `text` right behind it is what it prints, `[…]` standing for anything.
//! A block that is one `steadfast cluster …` is the first terminal: it runs until the
//! next one, and what it printed takes the place of what the guide says was printed.
//! Blocks of Rust are run with the docs of `steadfast-couchbase`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{BINARY, Running, quiet};

macro_rules! guides {
    ($($test:ident: $name:literal;)*) => {
        /// The guides that are run.
        const GUIDES: &[&str] = &[$($name),*];

        $(
            #[test]
            fn $test() {
                run($name, include_str!(concat!("../../../../docs/", $name)));
            }
        )*
    };
}

guides! {
    the_commands_on_strategies_print_what_the_guide_says: "choosing-a-strategy.md";
    the_commands_on_budgets_print_what_the_guide_says: "budgets.md";
    the_commands_on_storms_print_what_the_guide_says: "storm.md";
    the_commands_on_stages_print_what_the_guide_says: "idempotency-and-stages.md";
    the_commands_on_reasons_print_what_the_guide_says: "couchbase-reasons.md";
    the_commands_on_testing_print_what_the_guide_says: "testing-with-the-cluster.md";
    the_commands_for_sdk_authors_print_what_the_guide_says: "for-sdk-authors.md";
}

#[test]
fn every_guide_with_commands_is_run_and_ends_with_what_not_to_do() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for entry in std::fs::read_dir(docs).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.ends_with(".md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let is_run = GUIDES.contains(&name);
        assert!(is_run || !text.contains("```sh"), "{name} is not run");
        if is_run {
            let last = text.lines().rfind(|line| line.starts_with("## "));
            assert_eq!(last, Some("## What not to do"), "{name}");
        }
    }
}

/// A fenced block.
struct Block {
    language: String,
    text: String,
}

fn blocks(guide: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in guide.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => {
                let language = language.to_owned();
                let text = String::new();
                open = Some(Block { language, text });
            }
            (None, Some(block)) => writeln!(block.text, "{line}").unwrap(),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block without an end");
    blocks
}

fn run(name: &str, guide: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut terminal = None;
    let mut exports = String::new();
    let blocks = blocks(guide);
    for (index, block) in blocks.iter().enumerate() {
        match block.language.as_str() {
            "sh" => {}
            "rust" => continue,
            "text" => {
                let before = index.checked_sub(1).map(|before| &*blocks[before].language);
                assert_eq!(before, Some("sh"), "{name}: nobody prints\n{}", block.text);
                continue;
            }
            other => panic!("{name}: who runs blocks of {other:?}?"),
        }
        if let Some(arguments) = first_terminal(&block.text) {
            terminal = Some(Running::start(&arguments));
            continue;
        }
        let script = as_printed(&block.text, terminal.as_ref());
        let printed = shell(&format!("{exports}{script}"), directory.path());
        let exported = script.lines().filter(|line| line.starts_with("export "));
        exported.for_each(|line| writeln!(exports, "{line}").unwrap());
        let expected = blocks.get(index + 1).filter(|next| next.language == "text");
        if let Some(expected) = expected {
            let alike = matches(&expected.text, &printed);
            assert!(
                alike,
                "{name}: {}\nprinted\n{printed}\nand not\n{}",
                block.text, expected.text
            );
        }
    }
}

/// The arguments of a cluster that stays up.
fn first_terminal(block: &str) -> Option<Vec<&str>> {
    let mut lines = block.lines();
    let words: Vec<&str> = lines.next()?.split_whitespace().collect();
    let stays = words.starts_with(&["steadfast", "cluster"]) && lines.next().is_none();
    stays.then(|| words[2..].to_vec())
}

/// The script with what the cluster really printed.
fn as_printed(script: &str, terminal: Option<&Running>) -> String {
    let mut out = String::new();
    for line in script.lines() {
        match line.split_once("# as printed behind ") {
            None => writeln!(out, "{line}").unwrap(),
            Some((export, fact)) => {
                let (name, _) = export.split_once('=').unwrap();
                let terminal = terminal.expect("a cluster was started");
                let printed = terminal.fact(fact.trim().trim_matches('"'));
                let value = printed.strip_prefix("http://").unwrap_or(printed);
                writeln!(out, "{name}='{value}'").unwrap();
            }
        }
    }
    out
}

/// Runs a script, and returns what it printed where a reader would see it.
fn shell(script: &str, directory: &Path) -> String {
    let binaries = Path::new(BINARY).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("sh");
    quiet(&mut command);
    let output = command
        .args(["-eu", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", binaries.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{script}\nended with {}\n{printed}",
        output.status
    );
    printed
}

/// Whether a text is what a pattern says, in which `[…]` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.trim_end().split("[…]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.trim_end().strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.is_empty()
}

#[test]
fn a_pattern_is_as_strict_as_it_is_written() {
    assert!(matches("a [ x", "a [ x\n"));
    assert!(matches("cas […]\nb […] c", "cas 12\nb 3 c"));
    assert!(matches("a[…]", "a"));
    assert!(!matches("a", "a b"));
    assert!(!matches("a […] c", "a b"));
    assert!(!matches("a […] c […]", "a b d"));
}
