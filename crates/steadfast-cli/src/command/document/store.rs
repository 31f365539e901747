//! `steadfast upsert`, `insert` and `replace`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use steadfast_couchbase::Collection;
use steadfast_couchbase::collection::{Raw, Store};

use super::{CasArgs, DurabilityArgs, print_mutation};
use crate::connect::ConnectArgs;
use crate::effect;
use crate::exit::{refuse, usage};
use crate::files;

/// Write a document, whether it exists or not
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast upsert couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app
  steadfast upsert couchbase://localhost/travel logo --file logo.png --binary --user app
  curl -s https://api.example.com/user/42 | steadfast upsert couchbase://localhost/travel u:42 --user app

", crate::exit::document_statuses!()))]
pub(crate) struct UpsertArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    cas: CasArgs,
}

/// Write a document that must not exist yet
#[derive(Args)]
#[command(after_help = concat!("\
Example:
  steadfast insert couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app

", crate::exit::document_statuses!()))]
pub(crate) struct InsertArgs {
    #[command(flatten)]
    store: StoreArgs,
}

/// Write a document that must exist already
#[derive(Args)]
#[command(after_help = concat!("\
Example:
  steadfast replace couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app --cas 1783623595

", crate::exit::document_statuses!()))]
pub(crate) struct ReplaceArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    cas: CasArgs,
}

#[derive(Args)]
struct StoreArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Key of the document
    #[arg(value_parser = super::key)]
    key: String,
    /// The document, as JSON [default: standard input]
    #[arg(conflicts_with = "file", allow_hyphen_values = true)]
    value: Option<String>,
    /// Read the document from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Store the document as binary, not as JSON
    #[arg(long)]
    binary: bool,
    /// Delete the document after this time, as in 30m, rounded up to seconds [default: never]
    #[arg(long, value_name = "DURATION", value_parser = expiry)]
    expiry: Option<Duration>,
    #[command(flatten)]
    durability: DurabilityArgs,
}

pub(crate) async fn upsert(args: UpsertArgs) -> anyhow::Result<()> {
    let run = args.store.run(args.cas.cas, Collection::upsert_raw);
    run.await
}

pub(crate) async fn insert(args: InsertArgs) -> anyhow::Result<()> {
    args.store.run(None, Collection::insert_raw).await
}

pub(crate) async fn replace(args: ReplaceArgs) -> anyhow::Result<()> {
    let run = args.store.run(args.cas.cas, Collection::replace_raw);
    run.await
}

type StoreFn = for<'a> fn(&'a Collection, &'a str, Raw) -> Store<'a>;

impl StoreArgs {
    async fn run(self, cas: Option<u64>, store: StoreFn) -> anyhow::Result<()> {
        // Before connecting: an invalid value should not wait for a cluster.
        let value = self.value()?;
        let connect = &self.connect;
        let cluster = connect.open().await?;
        let collection = connect.collection(&cluster).await?;
        let mut store = store(&collection, &self.key, value).retry(connect.strategy());
        if let Some(cas) = cas {
            store = store.cas(cas);
        }
        if let Some(level) = self.durability.level() {
            store = store.durability(level);
        }
        if let Some(expiry) = self.expiry {
            store = store.expiry(expiry);
        }
        effect::begin();
        let result = store.await;
        cluster.close().await;
        let result = result.map_err(|error| connect.report(&error))?;
        print_mutation("stored", &result, connect.json);
        Ok(())
    }

    fn value(&self) -> anyhow::Result<Raw> {
        let bytes = match (&self.value, &self.file) {
            (Some(value), _) => value.clone().into_bytes(),
            (None, Some(path)) => files::read(path, files::DOCUMENT)?,
            (None, None) if std::io::stdin().is_terminal() => {
                refuse!("no document: give it as an argument, with --file, or on standard input")
            }
            (None, None) => {
                let input = files::bounded(std::io::stdin().lock(), files::DOCUMENT);
                let input = input
                    .map_err(|error| usage(format_args!("cannot read standard input: {error}")))?;
                if input.is_empty() && !self.binary {
                    refuse!(
                        "no document: standard input is empty; give it as an argument, or with --file"
                    );
                }
                input
            }
        };
        if self.binary {
            return Ok(Raw::binary(bytes));
        }
        if let Err(error) = serde_json::from_slice::<&RawValue>(&bytes) {
            refuse!(
                "the document is not JSON ({error}): put text in double quotes, as in '\"Ada\"', \
                 or store it with --binary"
            );
        }
        Ok(Raw::json(bytes))
    }
}

/// Parses an expiry. Zero is rejected, because it means "never" in the protocol.
fn expiry(text: &str) -> Result<Duration, String> {
    match crate::duration::parse_unbounded(text)? {
        Duration::ZERO => {
            Err("must be above 0: leave --expiry out for a document that stays".to_owned())
        }
        expiry => Ok(expiry),
    }
}
