//! The checks of the rows and of the page.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::pin::{self, Level};
use crate::rows::{DOCUMENTS, Row, decisions, mentioned, parse, summary};

/// A reason of fewer words explains nothing.
const WORDS_OF_A_REASON: usize = 4;

/// Everything that is wrong, each in one line that names the row.
///
/// The texts are those of `docs/conformance/*.toml`, in the order of [`DOCUMENTS`], of
/// `docs/conformance.md`, of `docs/decisions.md` and of `.ci/bugs/*.toml`.
pub(crate) fn problems(
    documents: &[String],
    page: &str,
    decided: &str,
    bugs: &str,
    root: &Path,
) -> Vec<String> {
    let (mut problems, mut all) = (Vec::new(), Vec::new());
    for ((document, _), text) in DOCUMENTS.iter().zip(documents) {
        let (rows, found) = parse(document, text);
        problems.extend(found);
        problems.extend(ids(document, &rows));
        all.extend(rows);
    }
    let bugs: Table = bugs.parse().unwrap_or_else(|error| {
        problems.push(format!(".ci/bugs: {error}"));
        Table::new()
    });
    for row in &all {
        let found = state(row)
            .into_iter()
            .chain(places(row, root))
            .chain(pins(row, root))
            .chain(change(row, &bugs, root));
        problems.extend(found.map(|problem| format!("{}: {problem}", row.id)));
    }
    problems.extend(bugs.iter().filter_map(|(name, bug)| blunt(name, bug, root)));
    let defined = decisions(decided);
    problems.extend(numbering_of_decisions(&defined));
    problems.extend(mentions(&all, &defined));
    problems.extend(counts(&all, &summary(page)));
    problems
}

/// The numbers ascend. One may be missing: a decision is copied when it is implemented.
fn numbering_of_decisions(defined: &[u32]) -> Option<String> {
    let pair = defined.windows(2).find(|pair| pair[0] >= pair[1])?;
    let (before, after) = (pair[0], pair[1]);
    Some(format!(
        "docs/decisions.md: D{after} stands after D{before}"
    ))
}

/// Ids belong to their document and are numbered without holes, so that a row cannot get lost
/// unnoticed. That they are unique, the parser checks.
fn ids(document: &str, rows: &[Row]) -> Vec<String> {
    let (mut problems, mut last) = (Vec::new(), ("", 0));
    for Row { id, .. } in rows {
        let (group, number) = id.rsplit_once('-').unwrap_or((id, ""));
        if group.split('-').next() != Some(document) {
            problems.push(format!("{id}: does not belong to {document}.toml"));
            continue;
        }
        let expected = if last.0 == group { last.1 + 1 } else { 1 };
        if number.parse() != Ok(expected) {
            problems.push(format!("{id}: expected {group}-{expected} here"));
        }
        last = (group, expected);
    }
    problems
}

fn state(row: &Row) -> Option<String> {
    match &row.gap {
        _ if row.says.is_empty() => Some("says nothing".to_owned()),
        Some(why) => {
            too_short(why).then(|| format!("a gap says why, in {WORDS_OF_A_REASON} words"))
        }
        None if row.tests.is_empty() => Some("done, but no test pins it".to_owned()),
        None if row.code.is_empty() => Some("done, but no source file is named".to_owned()),
        None => None,
    }
}

fn too_short(why: &str) -> bool {
    why.split_whitespace().count() < WORDS_OF_A_REASON
}

fn places<'a>(row: &'a Row, root: &'a Path) -> impl Iterator<Item = String> + 'a {
    let missing = row.code.iter().filter(|place| !root.join(place).exists());
    missing.map(|place| format!("{place} does not exist"))
}

fn pins<'a>(row: &'a Row, root: &'a Path) -> impl Iterator<Item = String> + 'a {
    row.tests
        .iter()
        .filter_map(|pin| pin::exists(root, pin).err())
}

/// The change that a test of the row notices can still be made, and is one of its tests'.
fn change(row: &Row, bugs: &Table, root: &Path) -> Option<String> {
    if let Some(bug) = &row.bug {
        let Some(check) = bugs.get(bug).and_then(|bug| bug.get("check")?.as_str()) else {
            return Some(format!("there is no bug {bug:?}"));
        };
        let test = check.rsplit(['#', ':', ' ']).next().unwrap_or_default();
        let noticed = row
            .tests
            .iter()
            .any(|pin| pin.ends_with(&format!("#{test}")));
        return (!noticed).then(|| format!("no test of this row notices {bug:?}, but {test}"));
    }
    if let Some(why) = &row.no_change {
        return too_short(why).then(|| format!("no_change says why, in {WORDS_OF_A_REASON} words"));
    }
    impossible(&row.change, root)
}

/// A planted bug must be possible to plant, or no check can notice it.
fn blunt(name: &str, bug: &Value, root: &Path) -> Option<String> {
    let change = bug.get("change").and_then(Value::as_array);
    let texts = change.into_iter().flatten().filter_map(Value::as_str);
    let change: Vec<String> = texts.map(str::to_owned).collect();
    let problem = match change.is_empty() {
        true => "has no change".to_owned(),
        false => impossible(&change, root)?,
    };
    Some(format!(".ci/bugs: {name}: {problem}"))
}

/// Why a change cannot be made. It has a file, an old text and a new one, perhaps of several
/// files one after the other.
fn impossible(change: &[String], root: &Path) -> Option<String> {
    let (edits, rest) = change.as_chunks::<3>();
    if !rest.is_empty() {
        return Some("a change is a file, an old text and a new one".to_owned());
    }
    edits.iter().find_map(|[file, old, new]| {
        let found = fs::read_to_string(root.join(file)).unwrap_or_default();
        let times = found.matches(old.as_str()).count();
        (times != 1 || old == new).then(|| format!("{file} has {times} times {old:?}, not once"))
    })
}

/// Rows mention decisions that exist, and every decision has its row.
fn mentions(rows: &[Row], defined: &[u32]) -> Vec<String> {
    let (mut problems, mut seen) = (Vec::new(), BTreeSet::new());
    for row in rows {
        for number in mentioned(&format!("{} {}", row.says, row.decisions.join(" "))) {
            seen.insert(number);
            if !defined.contains(&number) {
                problems.push(format!("{}: there is no decision D{number}", row.id));
            }
        }
    }
    let unseen = defined.iter().filter(|number| !seen.contains(number));
    problems.extend(unseen.map(|number| format!("D{number}: no row mentions it")));
    problems
}

fn counts(rows: &[Row], given: &[(&str, String)]) -> Vec<String> {
    let documents = DOCUMENTS.into_iter().chain([("", "all")]);
    documents
        .filter_map(|(document, name)| {
            let right = count(rows, document);
            let found = given.iter().find(|(given, _)| *given == name);
            let found = found.map_or("missing", |(_, counts)| counts);
            (found != right)
                .then(|| format!("summary of {name}: should be | {right} |, but is {found}"))
        })
        .collect()
}

/// Rows, gaps, rows by the widest level of their tests, and rows whose change is named.
fn count(rows: &[Row], document: &str) -> String {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.id.starts_with(document))
        .collect();
    let number = |counted: &dyn Fn(&Row) -> bool| rows.iter().filter(|row| counted(row)).count();
    let at =
        |level| number(&|row| row.tests.iter().map(|pin| pin::level(pin)).max() == Some(level));
    [
        rows.len(),
        number(&|row| row.gap.is_some()),
        at(Level::Unit),
        at(Level::Socket),
        at(Level::ForeignPeer),
        number(&|row| row.bug.is_some() || !row.change.is_empty()),
    ]
    .map(|number| number.to_string())
    .join(" | ")
}
