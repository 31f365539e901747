//! Reading the command line: what clap does, and what it should not.

use std::any::TypeId;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, Error};
use clap::{Arg, Command};

use crate::mask::mask;
use crate::number;
use crate::output::aside;
use crate::strategy;

/// A command that takes numbers for what they are.
///
/// Left to itself clap reads `--timeout -1s` as a timeout without a value and an option
/// `-1`, and proposes a command line that cannot work. Here what begins with a minus
/// and a digit is a value, to be refused with the reason.
pub(crate) fn with_numbers(command: Command) -> Command {
    command.mut_args(with_number).mut_subcommands(with_numbers)
}

fn with_number(arg: Arg) -> Arg {
    if !arg.get_action().takes_values() {
        return arg;
    }
    let read = arg.get_value_parser().type_id();
    if read == TypeId::of::<Duration>() {
        // With their unit they are no numbers to clap.
        arg.allow_hyphen_values(true)
    } else if read == TypeId::of::<usize>() {
        // Its own parser says "invalid digit", and not which are valid.
        arg.allow_negative_numbers(true).value_parser(number::size)
    } else {
        arg.allow_negative_numbers(true)
    }
}

/// Says what is wrong with the command line, without secrets that are in it, or gives
/// the help that was asked for.
pub(crate) fn refuse(error: &Error) -> ExitCode {
    if !error.use_stderr() {
        // What is asked for has nothing in it that was typed.
        error.exit();
    }
    aside(mask(error.render().ansi().to_string().trim_end()));
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidValue)
        && let Some(name) = strategy::suggest(typed)
    {
        aside(format_args!("\n{typed} is now called {name}"));
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
