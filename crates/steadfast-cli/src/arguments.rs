//! Command-line parsing on top of clap: negative numbers, secrets, renamed values.

use std::any::TypeId;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, Error};
use clap::{Arg, Command};

use crate::mask::mask;
use crate::number;
use crate::output::stderr_line;
use crate::strategy;

/// Makes a command accept negative numbers as values.
///
/// By default clap reads `--timeout -1s` as a timeout without a value and an option `-1`,
/// and suggests a command line that cannot work. Here `-1s` is a value, which its parser
/// rejects with the reason.
pub(crate) fn with_numbers(command: Command) -> Command {
    command.mut_args(with_number).mut_subcommands(with_numbers)
}

fn with_number(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let parsed = arg.get_value_parser().type_id();
    if parsed == TypeId::of::<Duration>() {
        // Clap does not see a number in a duration with its unit.
        arg.allow_hyphen_values(true)
    } else if parsed == TypeId::of::<usize>() {
        // The message of clap's own parser is "invalid digit".
        arg.allow_negative_numbers(true).value_parser(number::size)
    } else {
        arg.allow_negative_numbers(true)
    }
}

/// Prints a usage error without the secrets in it, or the help that was requested.
pub(crate) fn report(error: &Error) -> ExitCode {
    if !error.use_stderr() {
        // Help and version contain nothing that the user typed.
        error.exit();
    }
    stderr_line(mask(error.render().ansi().to_string().trim_end()));
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && let Some(name) = strategy::new_name(typed)
    {
        stderr_line(format_args!("\n{typed} is now called {name}"));
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
