//! Schedule files: commands that `steadfast cluster` runs over time.
//!
//! Each line has a time and a command as a person would type it, so that there is one
//! language to learn and what was tried by hand can be written down. The whole file is
//! read before the cluster starts, and rejected if a line is invalid.

use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use clap::{CommandFactory, FromArgMatches, Parser};
use serde_json::json;
use steadfast_cluster::fault::Schedule;
use tokio::time::Instant;

use crate::arguments::with_numbers;
use crate::command::{control, fault, topology};
use crate::exit::usage;
use crate::files;
use crate::output::line;

/// One line of a schedule file.
pub(crate) struct Event {
    /// The file and the line, for errors.
    location: String,
    text: String,
    command: ScheduledCommand,
}

#[derive(Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
enum ScheduledCommand {
    Control(control::ControlCommandArgs),
    Fault(fault::FaultArgs),
    Topology(topology::TopologyArgs),
    Stop,
}

/// Reads a schedule file.
///
/// # Errors
/// If the file cannot be read, or a line is invalid; the error names the line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Schedule<Event>> {
    let name = path.display();
    let text = String::from_utf8(files::read(path, files::TEXT)?)
        .map_err(|_| usage(format_args!("the schedule {name} is not UTF-8")))?;
    let mut schedule = Schedule::default();
    for (number, text) in (1..).zip(text.lines()) {
        let location = format!("{name}:{number}");
        let parsed = parse(text, &location)
            .map_err(|problem| usage(format_args!("{location}: {problem}")))?;
        if let Some((at, event)) = parsed
            && !schedule.push(at, event)
        {
            let problem = "comes before the line above it; lines are in order of time";
            return Err(usage(format_args!("{location}: {problem}")));
        }
    }
    Ok(schedule)
}

/// Runs the commands against the cluster with this control endpoint. Returns whether the schedule
/// said to stop.
///
/// Dropping the future leaves the cluster in its current state.
///
/// # Errors
/// If the cluster rejects a command, such as one that names an unknown node.
pub(crate) async fn play(
    schedule: Schedule<Event>,
    address: &str,
    json: bool,
) -> anyhow::Result<bool> {
    let start = Instant::now();
    for (at, event) in schedule {
        tokio::time::sleep_until(start + at).await;
        let now = start.elapsed().as_secs_f64();
        match json {
            true => line(json!({"at_s": now, "event": event.text})),
            false => line(format_args!("{now:>7.1}s   {}", event.text)),
        }
        match event.command {
            ScheduledCommand::Stop => return Ok(true),
            ScheduledCommand::Control(arguments) => control::run(arguments.at(address, json)).await,
            ScheduledCommand::Fault(arguments) => fault::run(arguments.at(address, json)).await,
            ScheduledCommand::Topology(arguments) => {
                topology::run(arguments.at(address, json)).await
            }
        }
        // The statuses of these commands are not those of this one.
        .map_err(|error| anyhow!("{}: {}: {error:#}", event.location, event.text))?;
    }
    Ok(false)
}

/// Parses a line. Returns none if it is empty or a comment.
fn parse(text: &str, location: &str) -> Result<Option<(Duration, Event)>, String> {
    let mut words = shlex::split(text).ok_or("has an unclosed quotation mark")?;
    if words.is_empty() {
        return Ok(None);
    }
    let at = crate::duration::parse(&words.remove(0))
        .map_err(|problem| format!("must begin with its time; {problem}"))?;
    if words.is_empty() {
        return Err("has a time and no command: control …, fault …, topology … or stop".to_owned());
    }
    let text = words.join(" ");
    let command = with_numbers(ScheduledCommand::command())
        .try_get_matches_from(words)
        .and_then(|matches| ScheduledCommand::from_arg_matches(&matches))
        .map_err(|error| first_paragraph(&error.to_string()))?;
    match &command {
        ScheduledCommand::Control(control) => control.check().map_err(|error| error.to_string())?,
        ScheduledCommand::Fault(fault) => fault.check().map_err(|error| error.to_string())?,
        ScheduledCommand::Topology(_) | ScheduledCommand::Stop => {}
    }
    let location = location.to_owned();
    Ok(Some((
        at,
        Event {
            location,
            text,
            command,
        },
    )))
}

/// Returns the parts of a message of clap's that say what is wrong and what was probably
/// meant, without the usage hints.
fn first_paragraph(message: &str) -> String {
    let lines = || message.lines().map(str::trim);
    let part: Vec<&str> = lines().take_while(|line| !line.is_empty()).collect();
    let tips = lines().filter(|line| line.starts_with("tip: "));
    let text = part.join(" ").trim_start_matches("error: ").to_owned();
    tips.fold(text, |text, tip| format!("{text}; {tip}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Duration, ScheduledCommand) {
        let (at, event) = parse(text, "here").unwrap().unwrap();
        (at, event.command)
    }

    #[test]
    fn a_line_is_a_time_and_a_command() {
        let (at, command) = parsed("1.5s fault add --key 'a b' answer --status ETMPFAIL # why");
        assert_eq!(at, Duration::from_millis(1500));
        assert!(matches!(command, ScheduledCommand::Fault(_)));
        let (_, command) = parsed("2m topology crash 1");
        assert!(matches!(command, ScheduledCommand::Topology(_)));
        assert!(matches!(parsed("1h stop").1, ScheduledCommand::Stop));
        assert!(parse("", "here").unwrap().is_none());
        assert!(parse("  # nothing", "here").unwrap().is_none());
    }

    #[test]
    fn an_invalid_line_is_rejected_with_what_is_wrong() {
        for (text, problem) in [
            ("fault clear", "its time"),
            ("5 fault clear", "its time"),
            ("5s explode", "explode"),
            ("5s topolgy crash 1", "'topology'"),
            ("5s fault add --opcode GTE hold", "did you mean GET?"),
            ("5s", "no command"),
            ("5s fault add answer --status NONSENSE", "NONSENSE"),
            ("5s fault add --probability 2 hold", "probability"),
            ("5s topology crash", "NODE"),
            ("5s fault add --key 'a hold", "quotation"),
        ] {
            let Err(found) = parse(text, "here") else {
                panic!("{text} was read");
            };
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
