//! Parses the page into rows and counts.

/// One statement of a document.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: String,
    /// Everything between the id and the place.
    pub(crate) words: String,
    pub(crate) places: Vec<String>,
    pub(crate) pins: Vec<String>,
    pub(crate) level: String,
    pub(crate) state: String,
}

/// One line of the summary, without its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) document: String,
    pub(crate) numbers: String,
}

#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    pub(crate) counts: Vec<Counts>,
    /// Lines of tables that are neither.
    pub(crate) problems: Vec<String>,
}

impl Page {
    /// Every line of every table is a row, except for heads, rules, and the
    /// table under the heading `Summary`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut summary = false;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(heading) = line.strip_prefix("## ") {
                summary = heading == "Summary";
            }
            let Some(cells) = cells(line) else { continue };
            match cells[..] {
                ["id" | "document", ..] => {}
                [document, ref numbers @ ..] if summary => page.counts.push(Counts {
                    document: document.to_owned(),
                    numbers: numbers.join(" | "),
                }),
                [id, statement, decisions, places, pins, level, state] => page.rows.push(Row {
                    id: id.to_owned(),
                    words: format!("{statement} {decisions}"),
                    places: quoted(places),
                    pins: quoted(pins),
                    level: level.to_owned(),
                    state: state.to_owned(),
                }),
                _ => page.problems.push(format!(
                    "line {number}: a row has 7 cells, this one {}: {line}",
                    cells.len()
                )),
            }
        }
        page
    }
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
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    let rule = |cell: &&str| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':'));
    (!cells.iter().all(rule)).then_some(cells)
}

/// What stands between backticks.
fn quoted(cell: &str) -> Vec<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_owned).collect()
}
