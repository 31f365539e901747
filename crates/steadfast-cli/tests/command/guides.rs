//! Runs the commands of the guides.
//!
//! Each block marked `sh` is run, in order and in one directory. A block marked `text` right
//! after it is the expected output, in which `[…]` stands for anything. A block with only
//! `steadfast cluster …` is the first terminal: it runs until the next one, and its output
//! replaces the addresses in the guide. Blocks of Rust are doctests of the crates.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{BINARY, Running, quiet};

macro_rules! guides {
    ($($test:ident: $name:literal;)*) => {
        /// The guides with commands.
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
    choosing_a_strategy: "choosing-a-strategy.md";
    simulation: "simulation.md";
    storm: "storm.md";
    idempotency_and_stages: "idempotency-and-stages.md";
    couchbase_reasons: "couchbase-reasons.md";
    testing_with_the_cluster: "testing-with-the-cluster.md";
    for_sdk_authors: "for-sdk-authors.md";
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
        // Other programs are run by interop/audit/run.py, which writes this page.
        let is_written = name == "audit.md";
        assert!(
            is_run || is_written || !text.contains("```sh"),
            "{name} is not run"
        );
        if is_run {
            let last = text.lines().rfind(|line| line.starts_with("## "));
            assert_eq!(last, Some("## What not to do"), "{name}");
        }
    }
}

#[test]
fn files_that_guides_show_are_the_files_that_are_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut shown = 0;
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let guide = std::fs::read_to_string(&path).unwrap();
        for part in guide.split("<!-- file: ").skip(1) {
            let (file, rest) = part.split_once(" -->\n").unwrap();
            let source = std::fs::read_to_string(root.join(file)).unwrap();
            let block = blocks(rest.split("\n<!-- ").next().unwrap()).remove(0);
            assert!(
                block.text == source,
                "{} does not show {file}: run packages/guide.py",
                path.display()
            );
            shown += 1;
        }
    }
    assert!(shown > 0, "no file is shown");
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
    assert!(open.is_none(), "a block is not closed");
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
            // Examples of the crates, which run as tests of their docs.
            "rust" | "toml" | "json" => continue,
            "text" => {
                let before = index.checked_sub(1).map(|before| &*blocks[before].language);
                assert_eq!(
                    before,
                    Some("sh"),
                    "{name}: no command prints\n{}",
                    block.text
                );
                continue;
            }
            other => panic!("{name}: blocks of {other:?} are not supported"),
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

/// Returns the arguments of a block that only starts a cluster.
fn first_terminal(block: &str) -> Option<Vec<&str>> {
    let mut lines = block.lines();
    let words: Vec<&str> = lines.next()?.split_whitespace().collect();
    let starts = words.starts_with(&["steadfast", "cluster"]) && lines.next().is_none();
    // With a command, the cluster ends by itself.
    let stays = starts && !words.contains(&"--");
    stays.then(|| words[2..].to_vec())
}

/// Replaces the addresses in a script by those that the cluster printed.
fn as_printed(script: &str, terminal: Option<&Running>) -> String {
    let mut out = String::new();
    for line in script.lines() {
        match line.split_once("# as printed behind ") {
            None => writeln!(out, "{line}").unwrap(),
            Some((export, fact)) => {
                let (name, _) = export.split_once('=').unwrap();
                let terminal = terminal.expect("a cluster was started");
                let fact = fact.trim().trim_matches('"');
                let printed = terminal.fact(fact);
                let mut value = printed
                    .strip_prefix("http://")
                    .unwrap_or(printed)
                    .to_owned();
                if fact == "control" {
                    value = format!("{}@{value}", terminal.fact("token"));
                }
                writeln!(out, "{name}='{value}'").unwrap();
            }
        }
    }
    out
}

/// Runs a script and returns its output.
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

/// Matches a text with a pattern in which `[…]` stands for anything.
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
fn patterns_are_strict_outside_of_the_gaps() {
    assert!(matches("a [ x", "a [ x\n"));
    assert!(matches("cas […]\nb […] c", "cas 12\nb 3 c"));
    assert!(matches("a[…]", "a"));
    assert!(!matches("a", "a b"));
    assert!(!matches("a […] c", "a b"));
    assert!(!matches("a […] c […]", "a b d"));
}
