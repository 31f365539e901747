//! The end of the command: an exit status for scripts, a message for people.

use std::fmt;
use std::process::ExitCode;

use serde_json::json;
use steadfast_cluster::ClusterError;
use steadfast_couchbase::{ConfigError, Error, ErrorKind};

use crate::effect;
use crate::mask::mask;
use crate::output::{BAD, stderr_line, styled};
use crate::signals::{INTERRUPTED, TERMINATED};

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
  5  the document exists already, or has changed
  130, 143  interrupted; the message says whether it may have been applied"
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

/// The help text on the exit statuses of commands that control a cluster.
macro_rules! control_statuses {
    () => {
        "\
Exit status:
  0  done
  1  failed; nothing was changed
  2  the command line is invalid
  3  the cluster has no such rule or node
  4  failed; it may have been done
  130, 143  interrupted; the message says whether it may have been done"
    };
}

pub(crate) use control_statuses;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const AMBIGUOUS: u8 = 4;
const PRECONDITION: u8 = 5;
const UNMET: u8 = 6;
const UNCOVERED: u8 = 7;
/// As shells say that a command cannot be run.
const NOT_RUN: u8 = 127;

/// The exit status of a command that has already printed why it failed.
#[derive(Debug)]
pub(crate) struct AlreadyReported(u8);

impl AlreadyReported {
    pub(crate) const FAILED: Self = Self(FAILED);

    /// The status of a signal or of another command, as shells give it.
    pub(crate) const fn from_status(status: u8) -> Self {
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

/// An error with its own exit status.
#[derive(Debug)]
struct StatusError {
    status: u8,
    text: String,
}

/// Makes an error that ends the command like an invalid option.
pub(crate) fn usage(problem: impl fmt::Display) -> anyhow::Error {
    status_error(USAGE, problem)
}

/// Makes the error of a command that names something that does not exist.
pub(crate) fn not_found(problem: impl fmt::Display) -> anyhow::Error {
    status_error(NOT_FOUND, problem)
}

/// Makes the error of a change that may have been applied.
pub(crate) fn ambiguous(problem: impl fmt::Display) -> anyhow::Error {
    status_error(AMBIGUOUS, problem)
}

/// Makes the error of a command that cannot be started.
pub(crate) fn not_run(problem: impl fmt::Display) -> anyhow::Error {
    status_error(NOT_RUN, problem)
}

/// Makes the error of a run that missed an expectation.
pub(crate) fn unmet(problem: impl fmt::Display) -> anyhow::Error {
    status_error(UNMET, problem)
}

/// Makes the error of a run whose faults did not have their effects.
pub(crate) fn uncovered(problem: impl fmt::Display) -> anyhow::Error {
    status_error(UNCOVERED, problem)
}

/// Makes the error of a command that a signal stopped, with the status that shells expect.
pub(crate) fn interrupted(status: u8) -> anyhow::Error {
    let text = match effect::may_have_changed() {
        true => "interrupted; the change that was under way may have been applied",
        false => "interrupted; nothing was changed",
    };
    status_error(status, text)
}

fn status_error(status: u8, problem: impl fmt::Display) -> anyhow::Error {
    let text = problem.to_string();
    StatusError { status, text }.into()
}

/// Returns a usage error from a function.
macro_rules! refuse {
    ($($problem:tt)*) => {
        return Err($crate::exit::usage(format_args!($($problem)*)))
    };
}

pub(crate) use refuse;

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StatusError {}

/// Reports output that could not be written. A command that changed something has done so.
pub(crate) fn report_lost_output(lost: &std::io::Error, json: bool) -> ExitCode {
    let text = format!("the output could not be written: {lost}");
    let status = match effect::may_have_changed() {
        true => AMBIGUOUS,
        false => FAILED,
    };
    print(status, &text, json);
    ExitCode::from(status)
}

/// Prints an error, unless that was done, and returns the exit status.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    if let Some(AlreadyReported(status)) = error.downcast_ref() {
        return ExitCode::from(*status);
    }
    let status = status_of(error);
    print(status, &mask(&format!("{error:#}")), json);
    ExitCode::from(status)
}

/// Prints an error for people, or as JSON with the fields of the client's errors.
pub(crate) fn print(status: u8, text: &str, json: bool) {
    if !json {
        return stderr_line(format_args!("{} {text}", styled(BAD, "error:")));
    }
    let name = match status {
        USAGE => "InvalidArgument",
        NOT_FOUND => "NotFound",
        UNMET => "ExpectationNotMet",
        UNCOVERED => "NotCovered",
        INTERRUPTED | TERMINATED => "Interrupted",
        _ => "Failed",
    };
    let interrupted = matches!(status, INTERRUPTED | TERMINATED);
    let ambiguous = status == AMBIGUOUS || interrupted && effect::may_have_changed();
    stderr_line(json!({"error": name, "message": text, "ambiguous": ambiguous}));
}

/// Returns the exit status of an error: its own, or the one of a crate's error about what the
/// command line said.
fn status_of(error: &anyhow::Error) -> u8 {
    let own = |cause: &(dyn std::error::Error + 'static)| {
        let own = cause.downcast_ref::<StatusError>();
        // The settings of a cluster come from the command line only.
        let rejected = cause.downcast_ref::<ClusterError>();
        let usage = cause.is::<ConfigError>() || matches!(rejected, Some(ClusterError::Invalid(_)));
        own.map(|error| error.status).or(usage.then_some(USAGE))
    };
    error.chain().find_map(own).unwrap_or(FAILED)
}
