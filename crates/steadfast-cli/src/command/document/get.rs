//! `steadfast get`.

use std::io::IsTerminal;

use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;
use steadfast_couchbase::collection::GetResult;

use crate::connection::Connection;
use crate::output::{aside, bytes, line};

/// Print a document
///
/// The document goes to standard output byte for byte, what is known about it to
/// standard error.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast get couchbase://localhost/travel u:42 --user app
  steadfast get couchbases://db.example.com/travel/inventory/users u:42 --user app --ca ca.pem
  steadfast get couchbase://localhost/travel u:42 --user app --json | jq .content

", crate::exit::statuses!()))]
pub(crate) struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// The document's key
    #[arg(value_parser = super::key)]
    key: String,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { connection, key } = arguments;
    let cluster = connection.open().await?;
    let collection = connection.collection(&cluster).await?;
    let outcome = collection
        .get(&key)
        .retry_shared(connection.strategy())
        .await;
    cluster.close().await;
    match outcome {
        Ok(document) if connection.json => line(as_json(&document)),
        Ok(document) => {
            bytes(document.bytes());
            if std::io::stdout().is_terminal() {
                line("");
            }
            aside(format_args!("cas {}", document.cas()));
        }
        Err(error) => return Err(connection.failed(&error)),
    }
    Ok(())
}

/// The document as it is if it is JSON, and in numbers if it is not.
fn as_json(document: &GetResult) -> String {
    let content = serde_json::from_slice::<&RawValue>(document.bytes());
    let (name, content) = match &content {
        Ok(content) => ("content", content.get().to_owned()),
        Err(_) => ("bytes", json!(&document.bytes()[..]).to_string()),
    };
    let (cas, flags) = (document.cas(), document.flags());
    format!(r#"{{"cas":"{cas}","flags":{flags},"{name}":{content}}}"#)
}
