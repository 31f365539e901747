//! Writing to whoever reads.

use std::io::Write;

/// Writes a line to standard output; a reader that went away is no error of ours.
pub(crate) fn line(text: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
