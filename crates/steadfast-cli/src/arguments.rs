//! Command-line parsing on top of clap: negative numbers, secrets, renamed values.

use std::any::TypeId;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, Error};
use clap::{Arg, Command};

use crate::exit;
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

/// Decides whether the command line asks for JSON, even if it is invalid.
pub(crate) fn wants_json(line: impl Iterator<Item = OsString>) -> bool {
    line.take_while(|word| word != "--")
        .any(|word| word == "--json")
}

/// Prints a usage error without the secrets in it, as JSON if that is asked for.
pub(crate) fn report(error: &Error, json: bool) -> ExitCode {
    let status = u8::try_from(error.exit_code()).unwrap_or(u8::MAX);
    let renamed = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(typed)) => strategy::new_name(typed)
            .map(|name| format!("\n\n{typed} is now called {name}"))
            .unwrap_or_default(),
        _ => String::new(),
    };
    if json {
        let text = error.render().to_string();
        let text = text.trim_start_matches("error: ").trim_end();
        exit::print(status, &mask(&format!("{text}{renamed}")), true);
    } else {
        let text = error.render().ansi().to_string();
        stderr_line(mask(&format!("{}{renamed}", text.trim_end())));
    }
    ExitCode::from(status)
}
