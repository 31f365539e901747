//! `steadfast upsert`, `insert` and `replace`.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::value::RawValue;
use steadfast_couchbase::collection::Raw;

use super::{Terms, Version, done};
use crate::connection::Connection;
use crate::exit::{refuse, usage};
use crate::files;

/// Write a document, whether it exists or not
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast upsert couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app
  steadfast upsert couchbase://localhost/travel logo --file logo.png --binary --user app
  curl -s https://api.example.com/user/42 | steadfast upsert couchbase://localhost/travel u:42 --user app

", crate::exit::statuses!()))]
pub(crate) struct Upsert {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    version: Version,
}

/// Write a document that must not exist yet
#[derive(Args)]
#[command(after_help = concat!("\
Example:
  steadfast insert couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app

", crate::exit::statuses!()))]
pub(crate) struct Insert {
    #[command(flatten)]
    what: What,
}

/// Write a document that must exist already
#[derive(Args)]
#[command(after_help = concat!("\
Example:
  steadfast replace couchbase://localhost/travel u:42 '{\"name\": \"Ada\"}' --user app --cas 1783623595

", crate::exit::statuses!()))]
pub(crate) struct Replace {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    version: Version,
}

#[derive(Args)]
struct What {
    #[command(flatten)]
    connection: Connection,
    /// The document's key
    #[arg(value_parser = super::key)]
    key: String,
    /// The document, as JSON [default: what is piped in]
    #[arg(conflicts_with = "file", allow_hyphen_values = true)]
    value: Option<String>,
    /// A file with the document
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The document is not JSON
    #[arg(long)]
    binary: bool,
    /// Let the document vanish after this time, as in 30m, rounded up to seconds [default: it stays]
    #[arg(long, value_parser = expiry)]
    expiry: Option<Duration>,
    #[command(flatten)]
    terms: Terms,
}

enum How {
    Upsert,
    Insert,
    Replace,
}

pub(crate) async fn upsert(arguments: Upsert) -> anyhow::Result<()> {
    arguments
        .what
        .store(How::Upsert, arguments.version.cas)
        .await
}

pub(crate) async fn insert(arguments: Insert) -> anyhow::Result<()> {
    arguments.what.store(How::Insert, None).await
}

pub(crate) async fn replace(arguments: Replace) -> anyhow::Result<()> {
    arguments
        .what
        .store(How::Replace, arguments.version.cas)
        .await
}

impl What {
    async fn store(self, how: How, cas: Option<u64>) -> anyhow::Result<()> {
        // Before anything is dialled: a value that is none should not wait for a cluster.
        let value = self.value()?;
        let connection = &self.connection;
        let cluster = connection.open().await?;
        let collection = connection.collection(&cluster).await?;
        let mut store = match how {
            How::Upsert => collection.upsert_raw(&self.key, value),
            How::Insert => collection.insert_raw(&self.key, value),
            How::Replace => collection.replace_raw(&self.key, value),
        };
        store = store.retry_shared(connection.strategy());
        if let Some(cas) = cas {
            store = store.cas(cas);
        }
        if let Some(level) = self.terms.level() {
            store = store.durability(level);
        }
        if let Some(expiry) = self.expiry {
            store = store.expiry(expiry);
        }
        let outcome = store.await;
        cluster.close().await;
        match outcome {
            Ok(result) => done("stored", &result, connection.json),
            Err(error) => return Err(connection.failed(&error)),
        }
        Ok(())
    }

    fn value(&self) -> anyhow::Result<Raw> {
        let bytes = match (&self.value, &self.file) {
            (Some(value), _) => value.clone().into_bytes(),
            (None, Some(path)) => files::read(path, files::DOCUMENT)?,
            (None, None) if std::io::stdin().is_terminal() => {
                refuse!("which document? give it as an argument, with --file, or pipe it in")
            }
            (None, None) => {
                let piped = files::bounded(std::io::stdin().lock(), files::DOCUMENT);
                let piped = piped.map_err(|error| {
                    usage(format_args!("cannot read what is piped in: {error}"))
                })?;
                if piped.is_empty() && !self.binary {
                    refuse!("no document was piped in; give it as an argument, or with --file");
                }
                piped
            }
        };
        if self.binary {
            return Ok(Raw::binary(bytes));
        }
        if let Err(error) = serde_json::from_slice::<&RawValue>(&bytes) {
            refuse!(
                "the document is not JSON ({error}): a text is in double quotes, as in '\"Ada\"'; \
                 what is no JSON needs --binary"
            );
        }
        Ok(Raw::json(bytes))
    }
}

/// A time after which a document vanishes. To the protocol none means never, which is
/// not what somebody wants who says that it should vanish at once.
fn expiry(text: &str) -> Result<Duration, String> {
    match crate::duration::read(text)? {
        Duration::ZERO => Err(
            "a document cannot vanish at once; leave --expiry out for one that stays".to_owned(),
        ),
        expiry => Ok(expiry),
    }
}
