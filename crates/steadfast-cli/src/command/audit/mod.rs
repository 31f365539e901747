//! `steadfast audit`: tests from outside whether any client retries safely.

mod http;

use clap::{Args, Subcommand};

/// Test whether any client retries safely, from outside
///
/// Runs a client as a program, once for each case, against a server on this machine that fails
/// on purpose. Judges by the requests that arrive there, and when.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast audit http -- curl -sf --retry 3 -X {method} {url}
  steadfast audit http --expect safe -- python3 my_client.py {method} {url}")]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    protocol: AuditProtocol,
}

#[derive(Subcommand)]
enum AuditProtocol {
    Http(http::HttpAuditArgs),
}

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    match args.protocol {
        AuditProtocol::Http(args) => http::run(args).await,
    }
}
