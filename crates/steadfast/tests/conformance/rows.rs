//! Reads the documents' rows, and the counts of the page.

use toml::{Table, Value};

/// The documents, by their files in `docs/conformance/` and their names on the page.
pub(crate) const DOCUMENTS: [(&str, &str); 5] = [
    ("0049", "RFC 0049 rev 16"),
    ("0005", "RFC 0005"),
    ("0013", "RFC 0013"),
    ("smithy", "Smithy client guidance"),
    ("ours", "Decisions of this project"),
];

/// One statement of a document.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) says: String,
    pub(crate) decisions: Vec<String>,
    pub(crate) code: Vec<String>,
    pub(crate) tests: Vec<String>,
    /// Why it is not implemented.
    pub(crate) gap: Option<String>,
    /// A planted bug that a test of the row notices.
    pub(crate) bug: Option<String>,
    /// A file, a text in it, and what to write instead so that a test of the row fails.
    pub(crate) change: Vec<String>,
    /// Why there is neither.
    pub(crate) no_change: Option<String>,
}

/// The rows of one document, in the order of their numbers, and what is wrong with them.
pub(crate) fn parse(document: &str, text: &str) -> (Vec<Row>, Vec<String>) {
    let table: Table = match text.parse() {
        Ok(table) => table,
        Err(error) => return (Vec::new(), vec![format!("{document}.toml: {error}")]),
    };
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for (id, value) in &table {
        match value {
            Value::Table(_) if id == "parts" => {}
            Value::Table(fields) => match row(id, fields) {
                Ok(row) => rows.push(row),
                Err(problem) => problems.push(format!("{id}: {problem}")),
            },
            _ if id == "title" => {}
            _ => problems.push(format!("{document}.toml: unknown setting {id:?}")),
        }
    }
    rows.sort_by_key(|row| {
        let (part, number) = row.id.rsplit_once('-').unwrap_or_default();
        (part.to_owned(), number.parse::<u32>().unwrap_or_default())
    });
    (rows, problems)
}

fn row(id: &str, fields: &Table) -> Result<Row, String> {
    let mut row = Row {
        id: id.to_owned(),
        ..Row::default()
    };
    for (name, value) in fields {
        let wrong = || format!("{name} has the wrong type");
        let text = || value.as_str().map(str::to_owned).ok_or_else(wrong);
        let list = || {
            let items = value.as_array().into_iter().flatten();
            let list: Option<Vec<_>> = items.map(|item| Some(item.as_str()?.to_owned())).collect();
            list.filter(|list| !list.is_empty()).ok_or_else(wrong)
        };
        match name.as_str() {
            "says" => row.says = text()?,
            "decisions" => row.decisions = list()?,
            "code" => row.code = list()?,
            "tests" => row.tests = list()?,
            "gap" => row.gap = Some(text()?),
            "bug" => row.bug = Some(text()?),
            "change" => row.change = list()?,
            "no_change" => row.no_change = Some(text()?),
            _ => return Err(format!("unknown field {name:?}")),
        }
    }
    Ok(row)
}

/// The lines of the page's summary: a document and its counts.
pub(crate) fn summary(page: &str) -> Vec<(&str, String)> {
    let lines = page.lines().filter_map(cells);
    let counted = |cells: &Vec<&str>| cells[1..].iter().all(|cell| cell.parse::<u32>().is_ok());
    lines
        .filter(counted)
        .map(|cells| (cells[0], cells[1..].join(" | ")))
        .collect()
}

/// The decisions that a page defines, in its order.
pub(crate) fn decisions(text: &str) -> Vec<u32> {
    let first_cells = text.lines().filter_map(|line| Some(cells(line)?[0]));
    first_cells
        // An anchor for links may follow the number.
        .filter_map(|cell| cell.strip_prefix('D')?.split('<').next()?.parse().ok())
        .collect()
}

/// The decisions that a text mentions: a `D` and a number, standing alone.
pub(crate) fn mentioned(text: &str) -> impl Iterator<Item = u32> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter_map(|word| word.strip_prefix('D')?.parse().ok())
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}
