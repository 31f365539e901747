//! What is to happen to a cluster, and when.
//!
//! A scenario is a timetable of the commands that a person would type, in the words
//! that a person would use, so that there is one language to learn and what was tried
//! by hand can be written down. All of it is read, and refused if a line makes no
//! sense, before the cluster starts.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::time::Instant;

use crate::arguments::with_numbers;
use crate::command::{fault, topology};
use crate::control::Control;
use crate::exit::usage;
use crate::files;
use crate::output::line;

/// A timetable.
#[derive(Default)]
pub(crate) struct Scenario {
    events: Vec<Event>,
}

struct Event {
    at: Duration,
    /// Where it is written, for errors.
    place: String,
    text: String,
    what: What,
}

#[derive(Parser)]
#[command(
    no_binary_name = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Fault(fault::Arguments),
    Topology(topology::Arguments),
    Stop,
}

/// How far a scenario was played.
pub(crate) enum Played {
    /// All events happened.
    ToTheEnd,
    /// It said to stop.
    Stopped,
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or a line makes no sense; the error names the line.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = String::from_utf8(files::read(path, files::TEXT)?)
            .map_err(|_| usage(format_args!("the scenario {name} is not UTF-8")))?;
        let mut scenario = Self::default();
        for (index, text) in text.lines().enumerate() {
            let place = format!("{name}:{}", index + 1);
            let event = Event::parse(text, &place)
                .map_err(|problem| usage(format_args!("{place}: {problem}")))?;
            let last = scenario
                .events
                .last()
                .map_or(Duration::ZERO, |last| last.at);
            if event.as_ref().is_some_and(|event| event.at < last) {
                let problem = "comes before the line above it; a timetable is in order";
                return Err(usage(format_args!("{place}: {problem}")));
            }
            scenario.events.extend(event);
        }
        Ok(scenario)
    }

    /// Lets the events happen to the cluster with this control endpoint.
    ///
    /// Dropping the future leaves the cluster as it is then.
    ///
    /// # Errors
    /// If the cluster does not do what an event says, as with a node that is not there.
    pub(crate) async fn play(self, control: SocketAddr) -> anyhow::Result<Played> {
        let start = Instant::now();
        for event in self.events {
            tokio::time::sleep_until(start + event.at).await;
            line(format_args!(
                "{:>7.1}s   {}",
                start.elapsed().as_secs_f64(),
                event.text
            ));
            let control = Control::at(control);
            match event.what {
                What::Stop => return Ok(Played::Stopped),
                What::Fault(arguments) => fault::run(arguments.at(control)).await,
                What::Topology(arguments) => topology::run(arguments.at(control)).await,
            }
            .with_context(|| format!("{}: {}", event.place, event.text))?;
        }
        Ok(Played::ToTheEnd)
    }
}

impl Event {
    /// An event, or nothing if the line is empty or a comment.
    fn parse(text: &str, place: &str) -> Result<Option<Self>, String> {
        let mut words = shlex::split(text).ok_or("has a quotation mark without its other")?;
        if words.is_empty() {
            return Ok(None);
        }
        let at = crate::duration::parse(&words.remove(0))
            .map_err(|problem| format!("begins with its time; {problem}"))?;
        if words.is_empty() {
            return Err("says when, and not what: fault …, topology … or stop".to_owned());
        }
        let text = words.join(" ");
        let what = with_numbers(Command::command())
            .try_get_matches_from(words)
            .and_then(|matches| Command::from_arg_matches(&matches))
            .map_err(|error| first_part(&error.to_string()))?
            .what;
        if let What::Fault(fault) = &what {
            fault.check().map_err(|error| error.to_string())?;
        }
        Ok(Some(Self {
            at,
            place: place.to_owned(),
            text,
            what,
        }))
    }
}

/// The part of a message that says what is wrong; what comes after is for somebody who
/// typed it.
fn first_part(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let part: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    part.join(" ").trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Event>, String> {
        Event::parse(text, "here")
    }

    #[test]
    fn events_are_commands_with_a_time() {
        let event = parse("1.5s fault add --key 'a b' answer --status ETMPFAIL # why").unwrap();
        let event = event.unwrap();
        assert_eq!(event.at, Duration::from_millis(1500));
        assert!(matches!(event.what, What::Fault(_)));
        let event = parse("2m topology crash 1").unwrap().unwrap();
        assert!(matches!(event.what, What::Topology(_)));
        assert!(matches!(
            parse("1h stop").unwrap().unwrap().what,
            What::Stop
        ));
        assert!(parse("").unwrap().is_none());
        assert!(parse("  # nothing").unwrap().is_none());
    }

    #[test]
    fn a_line_that_makes_no_sense_is_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("fault clear", "its time"),
            ("5 fault clear", "its time"),
            ("5s explode", "explode"),
            ("5s", "not what"),
            ("5s fault add answer --status NONSENSE", "NONSENSE"),
            ("5s fault add --probability 2 hold", "probability"),
            ("5s topology crash", "NODE"),
            ("5s fault add --key 'a hold", "quotation"),
        ] {
            let Err(found) = parse(text) else {
                panic!("{text} was read");
            };
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
