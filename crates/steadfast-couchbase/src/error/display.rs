//! Errors as text: one line, or the whole history with `{:#}`.

use std::fmt;

use steadfast::report::Report;

use super::{Error, ErrorKind};

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = self.context();
        f.write_str(context.operation)?;
        let target = context.target.to_string();
        if !target.is_empty() {
            write!(f, " {target}")?;
        }
        if let Some(key) = &context.target.key {
            write!(f, "/{key}")?;
        }
        match (self.kind(), &context.report) {
            (kind, Some(report)) if kind.is_timeout() => {
                f.write_str(" timed out")?;
                if let Some(elapsed) = report.elapsed() {
                    write!(f, " after {:.2} s", elapsed.as_secs_f64())?;
                }
            }
            (ErrorKind::Couchbase, _) => f.write_str(" failed")?,
            (kind, _) => write!(f, ": {kind}")?,
        }
        if self.is_ambiguous() {
            f.write_str(", may have been applied")?;
        }
        if let Some(note) = &context.note {
            write!(f, ": {note}")?;
        }
        self.fmt_response(f)?;
        match &context.report {
            Some(report) => self.fmt_history(f, report),
            None => Ok(()),
        }
    }
}

impl Error {
    /// Writes the server's last response, if there was one.
    fn fmt_response(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kv) = self.context().kv() {
            if let (Some(status), true) = (kv.status, self.says_status()) {
                write!(f, " (status {status})")?;
            }
            if let Some(name) = &kv.error_map_name {
                write!(f, " [{name}]")?;
            }
            if let Some(text) = &kv.server_text {
                write!(f, "; the server says: {text}")?;
            }
        }
        if let Some(http) = self.context().http() {
            match (http.code, http.status) {
                (Some(code), _) => write!(f, " (code {code})")?,
                (None, Some(status)) => write!(f, " (HTTP {status})")?,
                (None, None) => {}
            }
            if let Some(message) = &http.message {
                write!(f, "; the service says: {message}")?;
            }
        }
        Ok(())
    }

    /// Whether the status says more than the kind does.
    fn says_status(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Couchbase | ErrorKind::InternalServerFailure
        )
    }

    fn fmt_history(&self, f: &mut fmt::Formatter<'_>, report: &Report) -> fmt::Result {
        if f.alternate() {
            write!(f, "{}", report.in_full())
        } else {
            write!(f, "{}", report.in_short())
        }
    }
}
