//! `steadfast audit couchbase`: any Couchbase SDK, through a driver.

use std::ffi::OsString;

use clap::Args;
use steadfast_audit::couchbase::{SdkAuditSettings, SdkRating, audit_couchbase};

use super::{explain, show_progress};
use crate::exit::{interrupted, unmet};
use crate::output::line;
use crate::signals::StopSignals;

/// Test whether a Couchbase SDK retries safely, and as its RFCs say
///
/// The driver is a small program around an SDK. It reads one command a line, as JSON, and
/// answers each with a line; docs/audit-couchbase.md describes them. A cluster runs in this
/// process. Each case injects one fault, asks for one operation, and judges by what the cluster
/// received and applied: RFC 0049 (retries), 0005 (vbuckets) and 0013 (error map).
#[derive(Args)]
#[command(after_help = "\
Examples:
  steadfast audit couchbase -- python3 interop/audit/couchbase/driver.py
  steadfast audit couchbase --only upsert --json -- ./my-driver

Exit status:
  0         the audit ran, and no case is unsafe
  1         the driver failed; the message says how
  2         the command line is invalid
  6         a case is unsafe
  127       the driver cannot be started
  130, 143  interrupted")]
pub(crate) struct CouchbaseAuditArgs {
    /// Run only cases with this in their titles, as in \"upsert: cut\"; repeatable
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// The driver and its arguments
    #[arg(last = true, required = true, value_name = "DRIVER")]
    command: Vec<OsString>,
}

pub(super) async fn run(args: CouchbaseAuditArgs) -> anyhow::Result<()> {
    let settings = SdkAuditSettings {
        command: args.command,
        only: args.only,
    };
    let mut signals = StopSignals::listen()?;
    let report = tokio::select! {
        report = audit_couchbase(&settings, show_progress) => report.map_err(explain)?,
        status = signals.next() => return Err(interrupted(status)),
    };
    if args.json {
        line(report.to_json());
    } else {
        line(&report);
    }
    match report.count(SdkRating::Unsafe) {
        0 => Ok(()),
        cases => Err(unmet(format_args!("{cases} cases are unsafe"))),
    }
}
