//! `steadfast explain`: shows a retry decision, its rule, and its delays.
//!
//! Nothing is decided here. The client's tables give a response its meaning, and the
//! engine's orchestrator runs the strategy in virtual time.

mod attempt_end;
mod case;
mod delays;
mod operation;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use steadfast_wire::error_map::{ErrorMap, MapVersion};

use crate::exit::usage;
use crate::files;
use crate::output::line;
use crate::strategy::StrategyName;
use attempt_end::{AttemptEndArgs, all_ends};
use case::ExplainedCase;
use operation::{ExplainedOperation, ServiceName};

/// Show whether an operation would be retried, why, and when
///
/// Give the operation and how its attempt ended: a status, an error code, or the stage in
/// which the connection was lost. The output shows the reason, the decision, its rule and
/// the delays. It comes from the code that decides in the client.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast explain kv upsert --status ETMPFAIL        the server is temporarily unable
  steadfast explain kv upsert --in-flight              the connection closed before the response
  steadfast explain kv get --not-sent BUCKET_ACCESS_ERROR --strategy best-effort
  steadfast explain query --code 4040 --readonly
  steadfast explain views --http 503 --timeout 10s
  steadfast explain kv get-and-lock --table            every end of an attempt

Rules come from Couchbase's SDK RFCs 0049, 0005 and 0013. D14 and the like are decisions
of this project where the RFCs are silent; see docs/decisions.md.

", crate::exit::plain_statuses!()))]
pub(crate) struct ExplainArgs {
    /// Service of the operation
    service: ServiceName,
    /// Operation: for kv a name such as get or mutate-in, for management GET, POST, PUT or
    /// DELETE. The other services have only one
    operation: Option<String>,
    #[command(flatten)]
    end: AttemptEndArgs,
    /// Retry strategy
    #[arg(long, value_enum, default_value_t)]
    strategy: StrategyName,
    /// Timeout of the operation, as in 2.5s [default: the client's]
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse_positive)]
    timeout: Option<Duration>,
    /// The query changes nothing, so that every retry is safe
    #[arg(long)]
    readonly: bool,
    /// Error map (JSON, as servers send it) to look statuses up in [default: that of the
    /// server]
    #[arg(long, value_name = "FILE")]
    error_map: Option<PathBuf>,
    /// Print a line for every way in which the attempt can end
    #[arg(long, conflicts_with = "attempt_end")]
    table: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let operation = ExplainedOperation::new(
        args.service,
        args.operation.as_deref(),
        args.readonly,
        args.timeout,
    )?;
    let strategy = args.strategy.build();
    let map = match &args.error_map {
        None => ErrorMap::shipped(MapVersion::V2),
        Some(path) => {
            let name = path.display();
            let json = files::read(path, files::TEXT)?;
            ErrorMap::parse(&json)
                .map_err(|error| usage(format_args!("{name} is not an error map: {error}")))?
        }
    };
    if args.table {
        let ends = all_ends(&operation, &map);
        let cases = ends
            .iter()
            .map(|end| ExplainedCase::new(&operation, end, &map, &*strategy));
        table::print(
            &operation,
            &cases.collect::<Result<Vec<_>, _>>()?,
            args.json,
        );
        return Ok(());
    }
    let end = args.end.parse(&operation)?;
    let case = ExplainedCase::new(&operation, &end, &map, &*strategy)?;
    if args.json {
        line(case.to_json());
        return Ok(());
    }
    line(&case);
    if let Some(other) = case.if_in_flight(&operation, &*strategy)? {
        line(other);
    }
    Ok(())
}
