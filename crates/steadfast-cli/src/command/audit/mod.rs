//! `steadfast audit`: tests from outside whether any client retries safely.

mod couchbase;
mod http;

use std::io::{IsTerminal, Write};

use clap::{Args, Subcommand};
use steadfast_audit::{AuditError, AuditProgress};

use crate::exit::{not_run, usage};

/// Test whether any client retries safely, from outside
///
/// Runs a client as a program, once for each case, against a server on this machine that fails
/// on purpose. Judges by the requests that arrive there, and when.
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast audit http -- curl -sf --retry 3 -X {method} {url}
  steadfast audit http --expect safe -- python3 my_client.py {method} {url}
  steadfast audit couchbase -- python3 interop/audit/couchbase/driver.py")]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    protocol: AuditProtocol,
}

#[derive(Subcommand)]
enum AuditProtocol {
    Http(http::HttpAuditArgs),
    Couchbase(couchbase::CouchbaseAuditArgs),
}

pub(crate) async fn run(args: AuditArgs) -> anyhow::Result<()> {
    match args.protocol {
        AuditProtocol::Http(args) => http::run(args).await,
        AuditProtocol::Couchbase(args) => couchbase::run(args).await,
    }
}

fn explain(error: AuditError) -> anyhow::Error {
    match error {
        AuditError::CannotStart { .. } => not_run(error),
        AuditError::NoCase { .. } => usage(error),
        other => other.into(),
    }
}

/// Draws a bar on a terminal.
fn show_progress(progress: AuditProgress) {
    let mut out = std::io::stderr();
    if !out.is_terminal() {
        return;
    }
    let AuditProgress { done, total } = progress;
    if total == 0 {
        let _ = write!(out, "\rrunning the command without faults").and_then(|()| out.flush());
        return;
    }
    let filled = done * 30 / total.max(1);
    // A terminal that is gone shows nothing.
    let _ = match done == total {
        true => write!(out, "\r{:60}\r", ""),
        false => write!(
            out,
            "\r{:█<filled$}{:░<rest$} {done} of {total} cases",
            "",
            "",
            rest = 30 - filled
        ),
    };
    let _ = out.flush();
}
