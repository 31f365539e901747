//! Writing to whoever reads: with colours on a terminal that wants them, without
//! anywhere else (`NO_COLOR` and `CLICOLOR` are heeded).

use std::fmt::Display;
use std::io::Write;

use anstyle::{AnsiColor, Style};

/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What is only there to be found when it is looked for.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What the eye should find first.
pub(crate) const STRONG: Style = Style::new().bold();

/// Writes a line to standard output; a reader that went away is no error of ours.
pub(crate) fn line(text: impl Display) {
    let mut out = anstream::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes a line to standard error, for people, where standard output is for data.
pub(crate) fn aside(text: impl Display) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes bytes to standard output as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// Whether colours are wanted there.
pub(crate) fn is_colourful(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "{style}{text}{style:#}"))
}
