//! `steadfast get`.

use std::io::IsTerminal;

use clap::Args;
use serde_json::json;
use serde_json::value::RawValue;
use steadfast_couchbase::collection::{Format, GetResult};

use crate::connect::ConnectArgs;
use crate::output::{bytes, line, stderr_line};

/// Print a document
///
/// Writes the document to standard output byte for byte, and its CAS to standard error.
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast get couchbase://localhost/travel u:42 --user app
  steadfast get couchbases://db.example.com/travel/inventory/users u:42 --user app --ca ca.pem
  steadfast get couchbase://localhost/travel u:42 --user app --json | jq .content

", crate::exit::document_statuses!()))]
pub(crate) struct GetArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Key of the document
    #[arg(value_parser = super::key)]
    key: String,
}

pub(crate) async fn run(args: GetArgs) -> anyhow::Result<()> {
    let connect = &args.connect;
    let cluster = connect.open().await?;
    let collection = connect.collection(&cluster).await?;
    let get = collection.get(&args.key).retry(connect.strategy());
    let document = get.await;
    cluster.close().await;
    let document = document.map_err(|error| connect.report(&error))?;
    if connect.json {
        line(to_json(&document));
        return Ok(());
    }
    bytes(document.bytes());
    if std::io::stdout().is_terminal() {
        line("");
    }
    stderr_line(format_args!("cas {}", document.cas()));
    Ok(())
}

/// Formats a document with its metadata. By its flags, the content is text or JSON. Other content
/// that is not JSON becomes a list of bytes.
fn to_json(document: &GetResult) -> String {
    let text = document.text().ok();
    let text = text.filter(|_| document.format() == Format::Text);
    let content = serde_json::from_slice::<&RawValue>(document.bytes());
    let (name, content) = match (text, &content) {
        (Some(text), _) => ("content", json!(text).to_string()),
        (None, Ok(content)) => ("content", content.get().to_owned()),
        (None, Err(_)) => ("bytes", json!(&document.bytes()[..]).to_string()),
    };
    let (cas, flags) = (document.cas(), document.flags());
    format!(r#"{{"cas":"{cas}","flags":{flags},"{name}":{content}}}"#)
}
