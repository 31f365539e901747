//! `steadfast query`.

use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadfast_couchbase::{Error, Query, QueryMeta, QueryRows};

use crate::connection::Connection;
use crate::exit::{refuse, usage};
use crate::output::{aside, bytes, line};

/// Run a SQL++ statement and print its rows, one line of JSON each
///
/// The rows go to standard output as they arrive. With --json they are the `rows` of
/// one object, whose `meta` has status, ids, warnings and metrics; if an error comes
/// after the first row, the object ends with it as `error`. If the address names a
/// bucket and a scope, the statement runs within them.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast query couchbase://localhost 'SELECT 1 AS one' --user app --readonly
  steadfast query couchbase://localhost/travel/inventory \\
      'SELECT name FROM users WHERE age > $least' --param least=30 --user app --readonly
  steadfast query couchbase://localhost 'SELECT 1' --user app --readonly --json | jq .meta.metrics

", crate::exit::statuses!()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The statement
    statement: String,
    /// The value of the parameter $NAME, as JSON or else as text; may be given several times
    #[arg(long = "param", value_name = "NAME=VALUE")]
    named: Vec<String>,
    /// The value of the next of $1, $2, …, as JSON or else as text; may be given several times
    #[arg(long = "arg", value_name = "VALUE")]
    positional: Vec<String>,
    /// The statement changes nothing, so that it may be sent again whatever happened
    #[arg(long)]
    readonly: bool,
    /// Let the service prepare the statement
    #[arg(long)]
    prepared: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let connection = &arguments.connection;
    let address = &connection.address;
    if address.collection.is_some() {
        refuse!("a statement runs within a scope; leave the collection out of the address");
    }
    let cluster = connection.open().await?;
    let statement = &arguments.statement;
    let query = match (address.string.bucket(), &address.scope) {
        (Some(bucket), Some(scope)) => cluster.bucket(bucket).scope(scope).query(statement),
        _ => cluster.query(statement),
    };
    let query = arguments.parameters(query)?;
    connection.services(&cluster).await?;
    let outcome = print(query, connection).await;
    cluster.close().await;
    outcome.map_err(|error| connection.failed(&error))
}

/// Prints the rows as they come, so that a long answer is not held as a whole.
async fn print(query: Query, connection: &Connection) -> Result<(), Error> {
    let mut rows = query.await?;
    if connection.json {
        return print_object(rows).await;
    }
    while let Some(row) = rows.next::<Box<RawValue>>().await? {
        line(row.get());
    }
    let Some(meta) = rows.meta() else {
        return Ok(());
    };
    for warning in &meta.warnings {
        aside(format_args!(
            "warning {}: {}",
            warning.code, warning.message
        ));
    }
    if let (true, Some(metrics)) = (connection.verbose, &meta.metrics) {
        let took = crate::duration::show(metrics.elapsed_time);
        aside(format_args!("rows {}, in {took}", metrics.result_count));
    }
    Ok(())
}

/// The same as one object. It is well-formed however the query ends, and there is none
/// if it ends before the first row.
async fn print_object(mut rows: QueryRows) -> Result<(), Error> {
    let mut begun = false;
    let outcome = loop {
        match rows.next::<Box<RawValue>>().await {
            Ok(Some(row)) => {
                bytes(if begun { b"," } else { b"{\"rows\":[" });
                bytes(row.get().as_bytes());
                begun = true;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    match &outcome {
        Ok(()) => {
            let front = if begun { "" } else { "{\"rows\":[" };
            let meta = rows.meta().map_or(Value::Null, as_json);
            line(format_args!("{front}],\"meta\":{meta}}}"));
        }
        Err(error) if begun => line(format_args!(
            "],\"meta\":null,\"error\":{}}}",
            error.to_json()
        )),
        Err(_) => {}
    }
    outcome
}

/// What is known of a query.
fn as_json(meta: &QueryMeta) -> Value {
    let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
    let warnings = meta.warnings.iter();
    json!({
        "status": meta.status,
        "request_id": meta.request_id,
        "client_context_id": meta.client_context_id,
        "signature": meta.signature,
        "warnings": warnings
            .map(|warning| json!({"code": warning.code, "message": warning.message}))
            .collect::<Vec<_>>(),
        "metrics": meta.metrics.as_ref().map(|metrics| json!({
            "elapsed_ms": millis(metrics.elapsed_time),
            "execution_ms": millis(metrics.execution_time),
            "result_count": metrics.result_count,
            "result_size": metrics.result_size,
            "mutation_count": metrics.mutation_count,
            "sort_count": metrics.sort_count,
            "error_count": metrics.error_count,
            "warning_count": metrics.warning_count,
        })),
    })
}

impl Arguments {
    fn parameters(&self, mut query: Query) -> anyhow::Result<Query> {
        for parameter in &self.named {
            let parts = parameter.split_once('=');
            let Some((name, value)) = parts.filter(|(name, _)| !name.is_empty()) else {
                refuse!("a --param is NAME=VALUE, not {parameter:?}");
            };
            query = query.named(name, &value_of(value)).map_err(usage)?;
        }
        for value in &self.positional {
            query = query.positional(&value_of(value)).map_err(usage)?;
        }
        let query = query.readonly(self.readonly).prepared(self.prepared);
        let query = query.metrics(self.connection.verbose || self.connection.json);
        Ok(query.retry(self.connection.strategy()))
    }
}

/// JSON if it is, and text if not, so that most values need no quotes.
fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
