//! `steadfast explain`: what would be decided, by which rule, and when the retries
//! would come.
//!
//! Nothing is decided here. The client's own tables say what an answer means, and the
//! engine's own orchestrator tries the strategy out in virtual time.

mod decision;
mod delays;
mod ending;
mod subject;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast_wire::error_map::{ErrorMap, MapVersion};

use crate::exit::usage;
use crate::files;
use crate::output::line;
use crate::strategy::StrategyName;
use decision::Decision;
use ending::{EndingArguments, alternatives};
use subject::{ServiceName, Subject};

/// Say whether an operation would be retried, why, and when
///
/// Takes how an attempt ended (a status, an error code, or the stage in which its
/// connection was lost) and says what that means to the operation, whether it is sent
/// again, by which rule, and with which delays. The answer comes from the code that
/// decides in the client, not from a description of it.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast explain kv upsert --status ETMPFAIL        the server says: not now
  steadfast explain kv upsert --in-flight              the connection closed before an answer
  steadfast explain kv get --not-sent BUCKET_ACCESS_ERROR --strategy best-effort
  steadfast explain query --code 4040 --readonly
  steadfast explain views --http 503 --timeout 10s
  steadfast explain kv get-and-lock --table            everything that can happen to it

Rules are those of Couchbase's SDK RFCs 0049, 0005 and 0013; a D and a number is a
decision of this project where they are silent, listed in docs/decisions.md.

", crate::exit::plain_statuses!()))]
pub(crate) struct Arguments {
    /// The service
    service: ServiceName,
    /// The operation: of kv its name, such as get or mutate-in; of management GET, POST,
    /// PUT or DELETE. The other services have just one
    operation: Option<String>,
    #[command(flatten)]
    ending: EndingArguments,
    /// Who decides about retries
    #[arg(long, value_enum, default_value_t)]
    strategy: StrategyName,
    /// How much time the operation has, as in 2.5s [default: the client's]
    #[arg(long, value_parser = crate::duration::parse_some)]
    timeout: Option<Duration>,
    /// The query changes nothing, so that it may be sent again whatever happened
    #[arg(long)]
    readonly: bool,
    /// An error map as servers send it (JSON), to explain statuses with [default: the one
    /// that servers ship]
    #[arg(long, value_name = "FILE")]
    error_map: Option<PathBuf>,
    /// Everything that can happen to the operation, a line for each
    #[arg(long, conflicts_with = "ending")]
    table: bool,
    /// For machines
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let subject = Subject::new(
        arguments.service,
        arguments.operation.as_deref(),
        arguments.readonly,
        arguments.timeout,
    )?;
    let strategy = arguments.strategy.build();
    let map = match &arguments.error_map {
        None => ErrorMap::shipped(MapVersion::V2),
        Some(path) => {
            let name = path.display();
            let json = files::read(path, files::TEXT)?;
            ErrorMap::parse(&json)
                .map_err(|error| usage(format_args!("{name} is no error map: {error}")))?
        }
    };
    if arguments.table {
        let endings = alternatives(&subject, &map);
        let decisions = endings
            .iter()
            .map(|ending| Decision::make(&subject, ending, &map, &*strategy));
        return table::print(
            &subject,
            decisions.collect::<Result<_, _>>()?,
            arguments.json,
        );
    }
    let ending = arguments.ending.read(&subject)?;
    let decision = Decision::make(&subject, &ending, &map, &*strategy)?;
    if arguments.json {
        line(decision.to_json());
        return Ok(());
    }
    line(&decision);
    if let Some(otherwise) = decision.otherwise(&subject, &*strategy)? {
        line(otherwise);
    }
    Ok(())
}
