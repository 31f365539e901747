//! Writing to standard output and standard error, with colours on terminals.
//!
//! The variables `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` apply.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Secondary information.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Headings.
pub(crate) const STRONG: Style = Style::new().bold();

/// The first error of writing to standard output.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Whether standard output belongs to a command that this process started.
static LENT: AtomicBool = AtomicBool::new(false);

/// Leaves standard output to another command. Lines go to standard error from now on.
pub(crate) fn lend() {
    LENT.store(true, Ordering::Relaxed);
}

/// Writes a line to standard output; [`lost`] returns the error if that failed.
pub(crate) fn line(text: impl Display) {
    if LENT.load(Ordering::Relaxed) {
        return stderr_line(text);
    }
    let mut out = anstream::stdout().lock();
    note(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Returns the first error of writing to standard output. A closed pipe does not count: its
/// reader chose to stop.
pub(crate) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error);
    }
}

/// Writes a line for people to standard error, apart from the data on standard output.
pub(crate) fn stderr_line(text: impl Display) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    note(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Writes text with styles to standard output, as it is on a terminal and plain elsewhere.
pub(crate) fn bytes_styled(text: &str) {
    let mut out = anstream::stdout().lock();
    note(write!(out, "{text}").and_then(|()| out.flush()));
}

/// Decides whether a stream gets colours.
pub(crate) fn is_colourful(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Formats text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "{style}{text}{style:#}"))
}

/// The longest line of a table.
const WIDTH: usize = 80;

/// Breaks text like [`wrapped`] for a terminal. Programs such as `grep` get one line.
pub(crate) fn wrapped_on_terminals(text: &str, indent: usize) -> String {
    match io::stdout().is_terminal() {
        true => wrapped(text, indent),
        false => text.to_owned(),
    }
}

/// Breaks text that begins at column `indent` into lines that all begin there.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let (mut lines, mut column) = (String::new(), indent);
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > WIDTH {
            lines += &format!("\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        lines += word;
        column += length;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_begin_at_the_indent() {
        let words = "word ".repeat(20);
        let lines: Vec<_> = wrapped(words.trim(), 10).lines().map(str::len).collect();
        assert_eq!(lines, [69, 10 + 29]);
        let long = "x".repeat(100);
        assert_eq!(wrapped(&long, 10), long);
    }
}
