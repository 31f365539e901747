//! How the command ends: a number for scripts, a sentence for people.

use std::fmt;
use std::process::ExitCode;

use steadfast_cluster::ClusterError;
use steadfast_couchbase::{ConfigError, Error, ErrorKind};

use crate::mask::mask;
use crate::output::{BAD, aside, styled};

/// What each exit status means; the help of every command that talks to a cluster
/// about documents ends with it.
macro_rules! statuses {
    () => {
        "\
Exit status:
  0  done
  1  failed; it was not applied
  2  the command line makes no sense, or names a file that cannot be read
  3  there is no such document
  4  failed, and may have been applied all the same
  5  the document is there already, or changed meanwhile"
    };
}

pub(crate) use statuses;

/// The same for commands that are done or not.
macro_rules! plain_statuses {
    () => {
        "\
Exit status:
  0  done
  1  failed
  2  the command line makes no sense, or names a file that cannot be read"
    };
}

pub(crate) use plain_statuses;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const AMBIGUOUS: u8 = 4;
const PRECONDITION: u8 = 5;

/// The command failed, and has said so already.
#[derive(Debug)]
pub(crate) struct Ended(u8);

impl Ended {
    /// Something was found wanting.
    pub(crate) const FAILED: Self = Self(FAILED);

    /// It was interrupted, and ends with the status that shells expect of that.
    pub(crate) const fn by_signal(status: u8) -> Self {
        Self(status)
    }

    /// The status of an operation that did not succeed.
    pub(crate) fn of(error: &Error) -> Self {
        Self(match error.kind() {
            _ if error.is_ambiguous() => AMBIGUOUS,
            // Refused by the client, before there was an attempt.
            ErrorKind::InvalidArgument if error.context().report().is_none() => USAGE,
            ErrorKind::DocumentNotFound => NOT_FOUND,
            ErrorKind::DocumentExists | ErrorKind::CasMismatch => PRECONDITION,
            _ => FAILED,
        })
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ended with status {}", self.0)
    }
}

impl std::error::Error for Ended {}

/// What was asked for makes no sense.
#[derive(Debug)]
struct Usage(String);

/// An error that ends the command as a wrong option does.
pub(crate) fn usage(problem: impl fmt::Display) -> anyhow::Error {
    Usage(problem.to_string()).into()
}

/// Ends a function with such an error.
macro_rules! refuse {
    ($($problem:tt)*) => {
        return Err($crate::exit::usage(format_args!($($problem)*)))
    };
}

pub(crate) use refuse;

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The command did what it was to, and nobody could be told.
pub(crate) fn report_lost(lost: &std::io::Error, changes: bool) -> ExitCode {
    aside(format_args!(
        "{} the output could not be written: {lost}",
        styled(BAD, "error:")
    ));
    ExitCode::from(if changes { AMBIGUOUS } else { FAILED })
}

/// Says what went wrong, unless that was done, and with which status to end.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(Ended(status)) = error.downcast_ref() {
        return ExitCode::from(*status);
    }
    let text = mask(&format!("{error:#}"));
    aside(format_args!("{} {text}", styled(BAD, "error:")));
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

/// Whether the command line is to blame: said so here, or by what it was handed to.
fn is_usage(error: &anyhow::Error) -> bool {
    error.is::<Usage>()
        || error.chain().any(|cause| {
            // Clusters are started from the command line only, with what it says.
            let refused = cause.downcast_ref::<ClusterError>();
            cause.is::<ConfigError>() || matches!(refused, Some(ClusterError::Invalid(_)))
        })
}
