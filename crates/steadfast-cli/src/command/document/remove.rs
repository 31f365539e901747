//! `steadfast remove`.

use clap::Args;

use super::{Terms, Version, done};
use crate::connection::Connection;

/// Remove a document
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast remove couchbase://localhost/travel u:42 --user app
  steadfast remove couchbase://localhost/travel u:42 --user app --durability majority

", crate::exit::statuses!()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The document's key
    #[arg(value_parser = super::key)]
    key: String,
    #[command(flatten)]
    version: Version,
    #[command(flatten)]
    terms: Terms,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments {
        connection,
        key,
        version,
        terms,
    } = arguments;
    let cluster = connection.open().await?;
    let collection = connection.collection(&cluster).await?;
    let mut remove = collection.remove(&key).retry_shared(connection.strategy());
    if let Some(cas) = version.cas {
        remove = remove.cas(cas);
    }
    if let Some(level) = terms.level() {
        remove = remove.durability(level);
    }
    let outcome = remove.await;
    cluster.close().await;
    match outcome {
        Ok(result) => done("removed", &result, connection.json),
        Err(error) => return Err(connection.failed(&error)),
    }
    Ok(())
}
