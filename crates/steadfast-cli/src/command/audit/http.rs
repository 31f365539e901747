//! `steadfast audit http`: any HTTP client, as a command.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use steadfast_audit::{
    AuditProtocol, AuditReport, AuditSettings, DemandResult, SafetyDemand, audit_http,
};

use super::{explain, show_progress};
use crate::duration;
use crate::exit::{interrupted, uncovered, unmet, usage};
use crate::output::line;
use crate::signals::StopSignals;

/// Test whether an HTTP client retries safely
///
/// The command is any client that sends one request and exits. It runs once for each case,
/// against a server on this machine that refuses, closes and resets connections, stays silent,
/// or responds with failures. The words {url}, {method}, {key}, {file} and {ca} are replaced in
/// the command; the same values are in its environment, as AUDIT_URL, AUDIT_METHOD, AUDIT_KEY,
/// AUDIT_FILE and AUDIT_CA. {key} is empty unless the request is a POST with an Idempotency-Key.
/// {file} is the path of a file of 1 MiB to upload. {ca} is, with --tls, the path of the
/// certificate to trust.
///
/// The report answers first whether a request may be applied twice. Then it counts the ratings:
///
///   unsafe          a request that is not idempotent was sent again after it may have been
///                   applied
///   storm           retries have no bound, no backoff or no jitter
///   rude            a retry came before the time that Retry-After names
///   gives up early  one more attempt would have been safe, and would have succeeded
///   not seen        the case showed nothing, and nothing is claimed
///   good            none of these
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[command(after_help = "\
Examples:
  steadfast audit http -- curl -sf --retry 3 -X {method} {url}
  steadfast audit http -- curl -sf --retry 3 --max-time 2 -X {method} \\
      -H 'Idempotency-Key: {key}' --data-binary @{file} {url}
  steadfast audit http --methods GET,POST --expect safe -- ./my-client {method} {url}
  steadfast audit http --only post/closed/once -- ./my-client {method} {url}
  steadfast audit http --http2 -- curl -sf --http2-prior-knowledge -X {method} {url}
  steadfast audit http --http2 --tls -- curl -sf --cacert {ca} -X {method} {url}

Exit status:
  0         the audit ran, and meets --expect if that is given
  1         the command cannot be audited; the message says why
  2         the command line is invalid
  6         cases break --expect
  7         no case breaks --expect, but not enough was seen to say that it holds
  127       the command cannot be started
  130, 143  interrupted")]
pub(crate) struct HttpAuditArgs {
    /// Serve HTTP/2 instead of HTTP/1.1; without --tls, at once and not by an upgrade
    #[arg(long)]
    http2: bool,
    /// Serve with TLS; the command finds the certificate to trust as {ca} or AUDIT_CA
    #[arg(long)]
    tls: bool,
    /// Methods to ask for, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "GET,PUT,POST", value_parser = method)]
    methods: Vec<String>,
    /// Fail with status 6 unless the client is: safe (no case is unsafe), calm (nor a storm),
    /// polite (nor rude) or good (nor gives up early)
    #[arg(long)]
    expect: Option<SafetyDemand>,
    /// Run only cases with this in their names, as in post/closed/once; repeatable
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// How long a command is watched after its first request
    #[arg(long, default_value = "20s", value_parser = duration::parse_positive)]
    limit: Duration,
    /// How long a command may take to its first request
    #[arg(long, default_value = "60s", value_parser = duration::parse_positive)]
    start_limit: Duration,
    /// How many commands run at a time
    #[arg(long, default_value_t = 32)]
    jobs: usize,
    /// Show every case, the good ones too
    #[arg(long)]
    all: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Also write the report as an HTML page, with a picture of the attempts over time
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The client and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(super) async fn run(args: HttpAuditArgs) -> anyhow::Result<()> {
    if args.jobs == 0 {
        return Err(usage("--jobs must be at least 1"));
    }
    // Opened first: a page that cannot be written must not waste a run.
    let page = match &args.html {
        Some(path) => {
            Some(File::create(path).with_context(|| format!("cannot write {}", path.display()))?)
        }
        None => None,
    };
    let settings = AuditSettings {
        protocol: AuditProtocol {
            http2: args.http2,
            tls: args.tls,
        },
        methods: args.methods.clone(),
        limit: args.limit,
        start_limit: args.start_limit,
        jobs: args.jobs,
        only: args.only.clone(),
        ..AuditSettings::new(args.command.clone())
    };
    let mut signals = StopSignals::listen()?;
    let report = tokio::select! {
        report = audit_http(&settings, show_progress) => report.map_err(explain)?,
        status = signals.next() => return Err(interrupted(status)),
    };
    if args.json {
        line(report.to_json());
    } else if args.all {
        line(report.with_all_cases());
    } else {
        line(&report);
    }
    if let Some(mut page) = page {
        page.write_all(report.to_html().as_bytes())
            .context("cannot write the page")?;
    }
    args.expect.map_or(Ok(()), |demand| check(demand, &report))
}

fn check(demand: SafetyDemand, report: &AuditReport) -> anyhow::Result<()> {
    match demand.check(report) {
        DemandResult::Met => Ok(()),
        DemandResult::Broken(cases) => Err(unmet(format_args!(
            "the client is not {demand}: {cases} cases break it"
        ))),
        DemandResult::Unknown(doubt) => Err(uncovered(format_args!(
            "the client cannot be called {demand}: {doubt}"
        ))),
    }
}

fn method(text: &str) -> Result<String, String> {
    let valid = !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase());
    valid
        .then(|| text.to_owned())
        .ok_or_else(|| "must be names in capitals, as in GET,POST".to_owned())
}
