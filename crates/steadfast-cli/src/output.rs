//! Writing to whoever reads: with colours on a terminal that wants them, without
//! anywhere else (`NO_COLOR` and `CLICOLOR` are heeded).

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};

/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What is only there to be found when it is looked for.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What the eye should find first.
pub(crate) const STRONG: Style = Style::new().bold();

/// Why standard output did not take something, if it did not.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Writes a line to standard output. If that cannot be done, [`lost`] says so.
pub(crate) fn line(text: impl Display) {
    let mut out = anstream::stdout().lock();
    note(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// What kept output from being written. A reader that went away is no error of
/// ours; a full disk is, and whoever redirected the output must hear of it.
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

/// Writes a line to standard error, for people, where standard output is for data.
pub(crate) fn aside(text: impl Display) {
    let mut out = anstream::stderr().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Writes bytes to standard output as they are.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    note(out.write_all(bytes).and_then(|()| out.flush()));
}

/// Whether colours are wanted there.
pub(crate) fn is_colourful(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// Text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "{style}{text}{style:#}"))
}
