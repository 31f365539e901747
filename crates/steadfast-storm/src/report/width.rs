//! Breaks lines, so that reports fit a terminal.

/// The number of columns of a narrow terminal.
pub(crate) const WIDTH: usize = 80;

/// Breaks a line between words before the last column. Lines after the first one are
/// indented by a number of columns. A word that is longer than a line stays whole.
pub(crate) fn wrapped(line: &str, indent: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for (index, word) in line.split(' ').enumerate() {
        let width = word.chars().count();
        if index > 0 && column + 1 + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            column = indent;
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_and_indented() {
        let line = format!("label  {} end", ["word"; 20].join(" "));
        let text = wrapped(&line, 7);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("label  word word"));
        assert_eq!(lines[1], format!("       {} end", ["word"; 6].join(" ")));
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_line_of_exactly_the_width_and_a_long_word_stay_whole() {
        let line = format!("{} {}", "ä".repeat(40), "b".repeat(39));
        assert_eq!(wrapped(&line, 4), line);
        let word = "x".repeat(100);
        assert_eq!(wrapped(&word, 4), word);
    }
}
