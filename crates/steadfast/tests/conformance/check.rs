//! The checks of the page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::page::{Counts, Page, Row, decisions, mentioned};
use crate::pin;

/// The documents by their names in the summary, with what their ids begin with.
const DOCUMENTS: [(&str, &str); 5] = [
    ("RFC 0049 rev 16", "0049-"),
    ("RFC 0005", "0005-"),
    ("RFC 0013", "0013-"),
    ("Smithy client guidance", "smithy-"),
    ("Decisions of this project", "ours-"),
];

/// A reason of fewer words explains nothing.
const WORDS_OF_A_REASON: usize = 4;

/// Everything that is wrong, each in one line that names the row.
pub(crate) fn problems(page: &str, decided: &str, root: &Path) -> Vec<String> {
    let page = Page::parse(page);
    let defined = decisions(decided);
    let mut problems = page.problems;
    problems.extend(numbering_of_decisions(&defined));
    problems.extend(ids(&page.rows));
    for row in &page.rows {
        let found = state(row)
            .chain(places(row, root))
            .chain(pins(row, root))
            .chain(level(row));
        problems.extend(found.map(|problem| format!("{}: {problem}", row.id)));
    }
    problems.extend(mentions(&page.rows, &defined));
    problems.extend(counts(&page.rows, &page.counts));
    problems
}

fn numbering_of_decisions(defined: &[u32]) -> Option<String> {
    let (place, found) = (1..).zip(defined).find(|(place, found)| place != *found)?;
    Some(format!(
        "docs/decisions.md: D{place} should stand where D{found} does"
    ))
}

/// Ids are unique, belong to a document, and are numbered without holes, so
/// that a row cannot get lost unnoticed.
fn ids(rows: &[Row]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<&str, u32> = BTreeMap::new();
    for Row { id, .. } in rows {
        if !DOCUMENTS.iter().any(|(_, prefix)| id.starts_with(prefix)) {
            problems.push(format!("{id}: belongs to no document"));
            continue;
        }
        if !seen.insert(id) {
            problems.push(format!("{id}: this id is used twice"));
            continue;
        }
        let (group, number) = id.rsplit_once('-').expect("a prefix ends in a hyphen");
        let expected = last.get(group).copied().unwrap_or(0) + 1;
        match number.parse::<u32>() {
            Ok(number) if number == expected => {}
            Ok(_) | Err(_) => problems.push(format!("{id}: expected {group}-{expected} here")),
        }
        last.insert(group, expected);
    }
    problems
}

fn state(row: &Row) -> impl Iterator<Item = String> {
    let problem = match (row.state.as_str(), row.state.strip_prefix("gap: ")) {
        ("done", _) if row.pins.is_empty() => Some("done, but no test pins it".to_owned()),
        ("done", _) if row.places.is_empty() => {
            Some("done, but no source file is named".to_owned())
        }
        ("done", _) => None,
        (_, Some(why)) if why.split_whitespace().count() >= WORDS_OF_A_REASON => None,
        (_, Some(why)) => Some(format!(
            "a gap says why, in {WORDS_OF_A_REASON} words or more: {why:?}"
        )),
        (other, None) => Some(format!(
            "its state is {other:?}, neither `done` nor `gap: …`"
        )),
    };
    problem.into_iter()
}

fn places<'a>(row: &'a Row, root: &'a Path) -> impl Iterator<Item = String> + 'a {
    let missing = row.places.iter().filter(|place| !root.join(place).exists());
    missing.map(|place| format!("{place} does not exist"))
}

fn pins<'a>(row: &'a Row, root: &'a Path) -> impl Iterator<Item = String> + 'a {
    row.pins
        .iter()
        .filter_map(|pin| pin::exists(root, pin).err())
}

/// A row says the widest level among its tests.
fn level(row: &Row) -> Option<String> {
    let right = row.pins.iter().map(|pin| pin::level(pin)).max();
    let right = right.map_or("", pin::Level::name);
    (row.level != right).then(|| format!("its level is {right:?}, not {:?}", row.level))
}

/// Rows mention decisions that exist, and every decision has its row.
fn mentions(rows: &[Row], defined: &[u32]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        for number in mentioned(&row.words) {
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

fn counts(rows: &[Row], given: &[Counts]) -> Vec<String> {
    let documents = DOCUMENTS.into_iter().chain([("all", "")]);
    documents
        .filter_map(|(document, prefix)| {
            let right = count(rows, prefix);
            let found = given.iter().find(|counts| counts.document == document);
            let found = found.map_or("missing", |counts| counts.numbers.as_str());
            (found != right)
                .then(|| format!("summary of {document}: should be | {right} |, but is {found}"))
        })
        .collect()
}

fn count(rows: &[Row], prefix: &str) -> String {
    let rows = rows.iter().filter(|row| row.id.starts_with(prefix));
    let (done, gaps): (Vec<&Row>, Vec<&Row>) = rows.partition(|row| row.state == "done");
    format!(
        "{} | {} | {}",
        done.len(),
        gaps.len(),
        done.len() + gaps.len()
    )
}
