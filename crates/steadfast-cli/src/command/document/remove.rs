//! `steadfast remove`.

use clap::Args;

use super::{CasArgs, DurabilityArgs, print_mutation};
use crate::connect::ConnectArgs;
use crate::effect;

/// Remove a document
#[derive(Args)]
#[command(after_help = concat!("\
Examples:
  steadfast remove couchbase://localhost/travel u:42 --user app
  steadfast remove couchbase://localhost/travel u:42 --user app --durability majority

", crate::exit::document_statuses!()))]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    connect: ConnectArgs,
    /// Key of the document
    #[arg(value_parser = super::key)]
    key: String,
    #[command(flatten)]
    cas: CasArgs,
    #[command(flatten)]
    durability: DurabilityArgs,
}

pub(crate) async fn run(args: RemoveArgs) -> anyhow::Result<()> {
    let connect = &args.connect;
    let cluster = connect.open().await?;
    let collection = connect.collection(&cluster).await?;
    let mut remove = collection.remove(&args.key).retry(connect.strategy());
    if let Some(cas) = args.cas.cas {
        remove = remove.cas(cas);
    }
    if let Some(level) = args.durability.level() {
        remove = remove.durability(level);
    }
    effect::begin();
    let result = remove.await;
    cluster.close().await;
    let result = result.map_err(|error| connect.report(&error))?;
    print_mutation("removed", &result, connect.json);
    Ok(())
}
