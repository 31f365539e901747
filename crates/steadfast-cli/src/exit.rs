//! The end of the command: an exit status for scripts, a message for people.

use std::fmt;
use std::process::ExitCode;

use steadfast_cluster::ClusterError;
use steadfast_couchbase::{ConfigError, Error, ErrorKind};

use crate::mask::mask;
use crate::output::{BAD, stderr_line, styled};

/// The help text on the exit statuses of commands on documents.
macro_rules! document_statuses {
    () => {
        "\
Exit status:
  0  done
  1  failed; nothing was applied
  2  the command line is invalid, or names a file that cannot be read
  3  the document does not exist
  4  failed; it may have been applied
  5  the document exists already, or has changed"
    };
}

pub(crate) use document_statuses;

/// The help text on the exit statuses of the other commands.
macro_rules! plain_statuses {
    () => {
        "\
Exit status:
  0  done
  1  failed
  2  the command line is invalid, or names a file that cannot be read"
    };
}

pub(crate) use plain_statuses;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const AMBIGUOUS: u8 = 4;
const PRECONDITION: u8 = 5;

/// The exit status of a command that has already printed why it failed.
#[derive(Debug)]
pub(crate) struct AlreadyReported(u8);

impl AlreadyReported {
    pub(crate) const FAILED: Self = Self(FAILED);

    /// A command that was interrupted, with the status that shells expect.
    pub(crate) const fn from_signal(status: u8) -> Self {
        Self(status)
    }

    /// An operation that failed.
    pub(crate) fn from_error(error: &Error) -> Self {
        Self(match error.kind() {
            _ if error.is_ambiguous() => AMBIGUOUS,
            // Without a report there was no attempt: the client rejected the argument.
            ErrorKind::InvalidArgument if error.context().report().is_none() => USAGE,
            ErrorKind::DocumentNotFound => NOT_FOUND,
            ErrorKind::DocumentExists | ErrorKind::CasMismatch => PRECONDITION,
            _ => FAILED,
        })
    }
}

impl fmt::Display for AlreadyReported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended with status {}", self.0)
    }
}

impl std::error::Error for AlreadyReported {}

/// An invalid command line that clap accepted.
#[derive(Debug)]
struct UsageError(String);

/// Makes an error that ends the command like an invalid option.
pub(crate) fn usage(problem: impl fmt::Display) -> anyhow::Error {
    UsageError(problem.to_string()).into()
}

/// Returns a usage error from a function.
macro_rules! refuse {
    ($($problem:tt)*) => {
        return Err($crate::exit::usage(format_args!($($problem)*)))
    };
}

pub(crate) use refuse;

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Reports output that could not be written. A command that `changes` something may have
/// done so.
pub(crate) fn report_lost_output(lost: &std::io::Error, changes: bool) -> ExitCode {
    stderr_line(format_args!(
        "{} the output could not be written: {lost}",
        styled(BAD, "error:")
    ));
    ExitCode::from(if changes { AMBIGUOUS } else { FAILED })
}

/// Prints an error, unless that was done, and returns the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(AlreadyReported(status)) = error.downcast_ref() {
        return ExitCode::from(*status);
    }
    let text = mask(&format!("{error:#}"));
    stderr_line(format_args!("{} {text}", styled(BAD, "error:")));
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

/// Decides whether the command line caused an error, here or in a crate that got it.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<UsageError>()
        || error.chain().any(|cause| {
            // The settings of a cluster come from the command line only.
            let rejected = cause.downcast_ref::<ClusterError>();
            cause.is::<ConfigError>() || matches!(rejected, Some(ClusterError::Invalid(_)))
        })
}
