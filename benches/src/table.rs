//! Tables for the terminal and for Markdown.

use std::fmt;

/// A table whose first column is words and whose other columns are numbers.
#[derive(Clone, Debug)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Cells that are missing stay empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn widths(&self) -> Vec<usize> {
        let column = |index: usize| {
            let rows = std::iter::once(&self.head).chain(&self.rows);
            rows.map(|row| {
                row.get(index)
                    .map_or(0, |cell: &String| cell.chars().count())
            })
            .max()
            .unwrap_or(0)
        };
        (0..self.head.len()).map(column).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        line(f, &self.head, &widths)?;
        for (index, width) in widths.iter().enumerate() {
            let dashes = "-".repeat(*width);
            let end = if index == 0 { '-' } else { ':' };
            write!(f, "|-{dashes}{end}")?;
        }
        writeln!(f, "|")?;
        self.rows.iter().try_for_each(|row| line(f, row, &widths))
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String], widths: &[usize]) -> fmt::Result {
    for (index, width) in widths.iter().enumerate() {
        let cell = cells.get(index).map_or("", String::as_str);
        if index == 0 {
            write!(f, "| {cell:<width$} ")?;
        } else {
            write!(f, "| {cell:>width$} ")?;
        }
    }
    writeln!(f, "|")
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_line_up_and_a_missing_cell_is_empty() {
        let mut table = Table::new(&["who", "ns"]);
        table.row(vec!["a loop".into(), "4.2".into()]);
        table.row(vec!["nobody".into()]);
        let lines = "| who    |  ns |\n|--------|----:|\n| a loop | 4.2 |\n| nobody |     |\n";
        assert_eq!(table.to_string(), lines);
    }
}
