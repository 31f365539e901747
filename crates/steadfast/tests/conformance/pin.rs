//! Looks for the tests and examples that the rows name.
//!
//! `path#name` is a function with a test attribute in that file;
//! `path#example:Item` an example that runs, in the docs of that item, and
//! `path#example:module` one in the docs of the whole file.

use std::fs;
use std::path::Path;

/// The peer of a test, the widest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Unit,
    Socket,
    ForeignPeer,
}

/// Where tests talk to a server of this project over real sockets.
const SOCKET: [&str; 6] = [
    "crates/steadfast-cluster/tests/",
    "crates/steadfast-couchbase/src/client/tests.rs",
    "crates/steadfast-couchbase/src/dns/tests/replaced.rs",
    "crates/steadfast-couchbase/src/services/tests/",
    "crates/steadfast-couchbase/tests/",
    "crates/steadfast-http/tests/",
];

/// Where tests talk to a client or a server that others wrote.
const FOREIGN_PEER: [&str; 3] = [
    "interop/",
    "crates/steadfast-http/tests/nginx/",
    "crates/steadfast-wire/tests/memcached.rs",
];

/// The level of a test, by its path.
pub(crate) fn level(pin: &str) -> Level {
    let under = |folders: &[&str]| folders.iter().any(|folder| pin.starts_with(folder));
    if under(&FOREIGN_PEER) {
        Level::ForeignPeer
    } else if under(&SOCKET) {
        Level::Socket
    } else {
        Level::Unit
    }
}

/// The error says what is wrong with it.
pub(crate) fn exists(root: &Path, pin: &str) -> Result<(), String> {
    let (path, name) = pin
        .split_once('#')
        .ok_or_else(|| format!("{pin} is not of the form path#test"))?;
    let source = fs::read_to_string(root.join(path))
        .map_err(|error| format!("{path} cannot be read: {error}"))?;
    match name.strip_prefix("example:") {
        None => test(&source, name).map_err(|problem| format!("{pin}: {problem}")),
        Some(item) if example(&source, item) => Ok(()),
        Some(item) => Err(format!(
            "{path}: there is no example that runs in the docs of {item}"
        )),
    }
}

fn test(source: &str, name: &str) -> Result<(), &'static str> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let Some(place) = lines.iter().position(|line| is_function(line, name)) else {
        return Err("there is no such test");
    };
    let above = above(&lines[..place]);
    let has = |attribute: &str| above.iter().any(|line| line.starts_with(attribute));
    if has("#[ignore") {
        return Err("is ignored, so it pins nothing");
    }
    if !has("#[test]") && !has("#[tokio::test") {
        return Err("is not a test");
    }
    Ok(())
}

fn is_function(line: &str, name: &str) -> bool {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("const ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")
        .and_then(|line| line.strip_prefix(name))
        .is_some_and(|rest| rest.starts_with(['(', '<']))
}

fn example(source: &str, item: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    if item == "module" {
        return runs(lines.iter().filter_map(|line| line.strip_prefix("//!")));
    }
    let places = (0..lines.len()).filter(|place| defines(lines[*place], item));
    places
        .map(|place| above(&lines[..place]))
        .any(|above| runs(above.iter().filter_map(|line| line.strip_prefix("///"))))
}

/// Whether the line begins the definition of an item with this name.
fn defines(line: &str, item: &str) -> bool {
    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
    let kind = words.find(|word| {
        matches!(
            *word,
            "struct" | "enum" | "trait" | "fn" | "type" | "const" | "static"
        )
    });
    !line.starts_with("//") && kind.is_some() && words.find(|word| *word != "fn") == Some(item)
}

/// Whether there is a block of Rust that rustdoc tests.
fn runs<'a>(docs: impl Iterator<Item = &'a str>) -> bool {
    docs.filter_map(|line| line.trim().strip_prefix("```"))
        .step_by(2)
        .any(|kind| matches!(kind, "" | "rust" | "compile_fail" | "should_panic"))
}

/// The attributes and docs that stand directly above a line.
fn above<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let apart = |line: &&str| line.is_empty() || line.ends_with(['{', '}', ';']);
    let end = lines
        .iter()
        .rposition(|line| apart(line) && !line.starts_with("///") && !line.starts_with("#["));
    &lines[end.map_or(0, |end| end + 1)..]
}

#[test]
fn only_what_runs_is_a_test() {
    let source = "
        #[test]
        fn plain() {}

        /// Docs and further attributes do not matter.
        #[tokio::test(
            start_paused = true
        )]
        #[expect(clippy::unwrap_used, reason = \"a test\")]
        async fn paused() {}

        #[test]
        #[ignore = \"slow\"]
        fn ignored() {}

        #[test]
        fn above() {}
        fn helper() {}

        // #[test]
        // fn commented_out() {}
    ";
    assert_eq!(test(source, "plain"), Ok(()));
    assert_eq!(test(source, "paused"), Ok(()));
    assert_eq!(
        test(source, "ignored"),
        Err("is ignored, so it pins nothing")
    );
    assert_eq!(test(source, "helper"), Err("is not a test"));
    assert_eq!(test(source, "commented_out"), Err("there is no such test"));
    assert_eq!(test(source, "plai"), Err("there is no such test"));
}

#[test]
fn only_what_runs_is_an_example() {
    let source = "
        //! ```text
        //! a drawing
        //! ```

        /// ```
        /// assert!(true);
        /// ```
        #[derive(Debug)]
        pub struct Runs;

        /// ```ignore
        /// nobody looks at this
        /// ```
        pub struct Rests;

        /// ```compile_fail
        /// let x: u8 = \"\";
        /// ```
        pub const fn fails() {}

        pub struct Bare;
    ";
    assert!(example(source, "Runs"));
    assert!(example(source, "fails"));
    for item in ["Rests", "Bare", "Run", "module"] {
        assert!(!example(source, item), "{item}");
    }
}
