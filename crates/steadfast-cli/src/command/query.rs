//! `steadfast query`.

use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadfast_couchbase::{Error, Query, QueryMeta, QueryRows};

use crate::connect::ConnectArgs;
use crate::effect;
use crate::exit::{refuse, usage};
use crate::output::{bytes, line, stderr_line};

/// Run a SQL++ statement and print its rows, one line of JSON each
///
/// Writes the rows to standard output as they arrive. If the address has a bucket and a
/// scope, the statement runs within them.
///
/// With --json the output is one object: `rows`, and `meta` with status, ids, warnings and
/// metrics. If an error follows the first row, the object ends with it as `error`.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast query couchbase://localhost 'SELECT 1 AS one' --user app --readonly
  steadfast query couchbase://localhost/travel/inventory \\
      'SELECT name FROM users WHERE age > $least' --param least=30 --user app --readonly
  steadfast query couchbase://localhost 'SELECT 1' --user app --readonly --json | jq .meta.metrics

", crate::exit::document_statuses!()))]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// The SQL++ statement
    statement: String,
    /// Value of the parameter $NAME, as JSON or else as text; repeatable
    #[arg(long = "param", value_name = "NAME=VALUE")]
    named: Vec<String>,
    /// Value of the next of $1, $2, …, as JSON or else as text; repeatable
    #[arg(long = "arg", value_name = "VALUE")]
    positional: Vec<String>,
    /// Another parameter of the request, as JSON or else as text, such as txid=ID; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    raw: Vec<String>,
    /// The statement changes nothing, so that every retry is safe
    #[arg(long)]
    readonly: bool,
    /// Prepare the statement
    #[arg(long)]
    prepared: bool,
}

pub(crate) async fn run(args: QueryArgs) -> anyhow::Result<()> {
    let connect = &args.connect;
    let address = &connect.address;
    if address.collection.is_some() {
        refuse!("a query runs in a scope: leave the collection out of the address");
    }
    let cluster = connect.open().await?;
    let statement = &args.statement;
    let query = match (address.string.bucket(), &address.scope) {
        (Some(bucket), Some(scope)) => cluster.bucket(bucket).scope(scope).query(statement),
        _ => cluster.query(statement),
    };
    let query = args.parameters(query)?;
    connect.services(&cluster).await?;
    if !args.readonly {
        effect::begin();
    }
    let printed = print(query, connect).await;
    cluster.close().await;
    printed.map_err(|error| connect.report(&error))
}

/// Prints the rows as they arrive, so that memory is bounded.
async fn print(query: Query, connect: &ConnectArgs) -> Result<(), Error> {
    let mut rows = query.await?;
    if connect.json {
        return print_object(rows).await;
    }
    while let Some(row) = rows.next::<Box<RawValue>>().await? {
        line(row.get());
    }
    let Some(meta) = rows.meta() else {
        return Ok(());
    };
    note_effect(meta);
    for warning in &meta.warnings {
        stderr_line(format_args!(
            "warning {}: {}",
            warning.code, warning.message
        ));
    }
    if let (true, Some(metrics)) = (connect.verbose, &meta.metrics) {
        let took = crate::duration::show(metrics.elapsed_time);
        stderr_line(format_args!("rows {}, in {took}", metrics.result_count));
    }
    Ok(())
}

/// Prints rows and metadata as one object. An error after the first row leaves it
/// well-formed; after an error before that there is no object.
async fn print_object(mut rows: QueryRows) -> Result<(), Error> {
    let mut started = false;
    let result = loop {
        match rows.next::<Box<RawValue>>().await {
            Ok(Some(row)) => {
                bytes(if started { b"," } else { b"{\"rows\":[" });
                bytes(row.get().as_bytes());
                started = true;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    match &result {
        Ok(()) => {
            let front = if started { "" } else { "{\"rows\":[" };
            rows.meta().map(note_effect);
            let meta = rows.meta().map_or(Value::Null, meta_json);
            line(format_args!("{front}],\"meta\":{meta}}}"));
        }
        Err(error) if started => line(format_args!(
            "],\"meta\":null,\"error\":{}}}",
            error.to_json()
        )),
        Err(_) => {}
    }
    result
}

/// Notes that a statement changed nothing, if its metrics prove it.
fn note_effect(meta: &QueryMeta) {
    if meta
        .metrics
        .as_ref()
        .is_some_and(|metrics| metrics.mutation_count == 0)
    {
        effect::nothing_changed();
    }
}

/// Formats the metadata of a query.
fn meta_json(meta: &QueryMeta) -> Value {
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

impl QueryArgs {
    fn parameters(&self, mut query: Query) -> anyhow::Result<Query> {
        for parameter in &self.named {
            let (name, value) = parse_named("--param", parameter)?;
            query = query.named(name, &value).map_err(usage)?;
        }
        for parameter in &self.raw {
            let (name, value) = parse_named("--raw", parameter)?;
            query = query.raw(name, &value).map_err(usage)?;
        }
        for value in &self.positional {
            query = query.positional(&parse_value(value)).map_err(usage)?;
        }
        let query = query.readonly(self.readonly).prepared(self.prepared);
        // The metrics of a statement that failed can prove that nothing was changed.
        let query = query.metrics(self.connect.verbose || self.connect.json || !self.readonly);
        Ok(query.retry(self.connect.strategy()))
    }
}

fn parse_named<'a>(option: &str, text: &'a str) -> anyhow::Result<(&'a str, Value)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name, parse_value(value))),
        _ => refuse!("invalid {option} {text:?}: write NAME=VALUE"),
    }
}

/// Parses JSON, or else takes the text as it is, so that most values need no quotes.
fn parse_value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
