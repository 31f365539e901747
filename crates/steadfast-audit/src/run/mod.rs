//! Runs the cases side by side, each with its own server and port.

mod error;

use std::ffi::OsString;
use std::io::Write;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use tempfile::NamedTempFile;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::cases::{Action, AuditCase, AuditProtocol, RequestKind};
use crate::command::{Assignment, ClientEnd, CommandTemplate};
use crate::journal::ArrivalLog;
use crate::judge::CaseRun;
use crate::probe::Probe;
use crate::report::{AuditReport, CaseReport, UnseenPart};
use crate::server::{LoopbackCertificate, ScriptedServer, ServerScript};
pub use error::AuditError;

/// The size of the file to upload.
const UPLOAD: usize = 1 << 20;
/// A smaller body arrives before an early response.
const LEAST_UPLOAD: u64 = 256 << 10;
/// How long a client that was told to wait for a day is watched.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the log is looked at.
const PERIOD: Duration = Duration::from_millis(10);

/// What to audit.
#[derive(Clone, Debug)]
pub struct AuditSettings {
    /// The command, its program first. `{url}`, `{method}`, `{key}`, `{file}` and `{ca}` are
    /// replaced.
    pub command: Vec<OsString>,
    /// The protocol of the server.
    pub protocol: AuditProtocol,
    /// The methods to ask for.
    pub methods: Vec<String>,
    /// How long a command is watched after its first request.
    pub limit: Duration,
    /// How long a command may take to its first request.
    pub start_limit: Duration,
    /// How many commands run at a time.
    pub jobs: usize,
    /// Parts of the names of cases; without any, all cases run.
    pub only: Vec<String>,
}

impl AuditSettings {
    /// Audits a command with the usual limits.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            protocol: AuditProtocol::default(),
            methods: ["GET", "PUT", "POST"].map(str::to_owned).to_vec(),
            limit: Duration::from_secs(20),
            start_limit: Duration::from_secs(60),
            jobs: 32,
            only: Vec::new(),
        }
    }

    fn kinds(&self) -> Vec<RequestKind> {
        let plain = self.methods.iter().map(|method| (method, false));
        let posts = self.methods.iter().filter(|method| *method == "POST");
        let keyed = posts.map(|method| (method, true));
        let kind = |(method, keyed): (&String, bool)| RequestKind {
            method: method.clone(),
            keyed,
        };
        plain.chain(keyed).map(kind).collect()
    }

    fn wants(&self, case: &AuditCase) -> bool {
        let id = case.id();
        self.only.is_empty() || self.only.iter().any(|part| id.contains(part))
    }
}

/// How far an audit is.
#[derive(Clone, Copy, Debug)]
pub struct AuditProgress {
    /// How many cases are done.
    pub done: usize,
    /// How many there are; 0 while the command runs without faults.
    pub total: usize,
}

/// Audits a client for HTTP.
///
/// Dropping the future kills all commands.
///
/// # Errors
/// If the command cannot be started, or sends no request to a server without faults.
pub async fn audit_http(
    settings: &AuditSettings,
    progress: impl Fn(AuditProgress),
) -> Result<AuditReport, AuditError> {
    let template = CommandTemplate::new(settings.command.clone()).ok_or(AuditError::NoCommand)?;
    let sweep = SweepGuard(&template);
    let setup = SharedSetup::new(settings.protocol).map_err(AuditError::Server)?;
    progress(AuditProgress { done: 0, total: 0 });
    let (probes, mut unseen) = probe(settings, &template, &setup).await?;
    let mut cases = Vec::new();
    for probe in &probes {
        for case in
            AuditCase::of_kind(&probe.sent, settings.protocol).filter(|case| settings.wants(case))
        {
            match case.fault.action {
                Action::RespondEarly(_) if probe.body < LEAST_UPLOAD => {
                    // A GET without a body is as it should be.
                    if case.kind.method != "GET" && case.kind.method != "HEAD" {
                        unseen.push(UnseenPart::small_body(&case, probe.body));
                    }
                }
                _ => cases.push((case, probe)),
            }
        }
    }
    if cases.is_empty() {
        return Err(AuditError::NoCase {
            only: settings.only.join(", "),
        });
    }
    let total = cases.len();
    let runner = CaseRunner {
        settings,
        template: &template,
        setup: &setup,
        starts: Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)),
    };
    let runs = cases
        .into_iter()
        .enumerate()
        .map(|(number, (case, probe))| {
            let runner = &runner;
            async move {
                let run = runner.run(number + 1, &case, probe).await?;
                Ok((number, CaseReport::new(&case, &run)))
            }
        });
    let mut runs = stream::iter(runs).buffer_unordered(settings.jobs.max(1));
    let mut reports = Vec::with_capacity(total);
    while let Some(report) = runs.next().await {
        reports.push(report?);
        progress(AuditProgress {
            done: reports.len(),
            total,
        });
    }
    reports.sort_by_key(|(number, _)| *number);
    drop(runs);
    drop(sweep);
    let reports = reports.into_iter().map(|(_, report)| report).collect();
    Ok(AuditReport::new(settings, &probes, reports, unseen))
}

/// Kills what is left of the commands when it is dropped.
struct SweepGuard<'a>(&'a CommandTemplate);

impl Drop for SweepGuard<'_> {
    fn drop(&mut self) {
        self.0.sweep();
    }
}

/// Learns which kinds of requests the command sends, and which it does not.
async fn probe(
    settings: &AuditSettings,
    template: &CommandTemplate,
    setup: &SharedSetup,
) -> Result<(Vec<Probe>, Vec<UnseenPart>), AuditError> {
    let kinds = settings.kinds();
    let probes = kinds
        .iter()
        .map(|kind| Probe::run(settings, template, kind.clone(), setup));
    let probed: Vec<_> = kinds.iter().zip(join_all(probes).await).collect();
    let mut seen: Vec<Probe> = Vec::new();
    // A command that does what it is asked for comes before one that ignores it.
    for exact in [true, false] {
        for probe in probed.iter().filter_map(|(_, probed)| probed.as_ref().ok()) {
            let is_new = seen.iter().all(|other| other.sent != probe.sent);
            if is_new && (probe.sent == probe.asked) == exact {
                seen.push(probe.clone());
            }
        }
    }
    let mut unseen = Vec::new();
    let mut failed = None;
    for (kind, probed) in probed {
        match probed {
            Ok(probe) if seen.iter().all(|other| other.sent != *kind) => {
                unseen.push(UnseenPart::not_sent(kind, &probe.sent));
            }
            Ok(_) => {}
            Err(error) => {
                unseen.push(UnseenPart::failed(kind, &error));
                failed = failed.or(Some(error));
            }
        }
    }
    match failed {
        Some(error) if seen.is_empty() => Err(error),
        _ => Ok((seen, unseen)),
    }
}

/// What the cases share.
struct CaseRunner<'a> {
    settings: &'a AuditSettings,
    template: &'a CommandTemplate,
    setup: &'a SharedSetup,
    /// Few commands start at a time: starting takes the processor, waiting does not.
    starts: Semaphore,
}

impl CaseRunner<'_> {
    /// Runs a case: one command, or a fleet of them.
    async fn run(
        &self,
        number: usize,
        case: &AuditCase,
        probe: &Probe,
    ) -> Result<CaseRun, AuditError> {
        let permit = self.starts.acquire().await.expect("it is never closed");
        let refuses_for = probe.startup * 2 + Duration::from_millis(500);
        let script = ServerScript {
            fault: Some((case.fault.action, case.times)),
            refuses_for,
            ..self.setup.script(number)
        };
        let server = ScriptedServer::start(script).map_err(AuditError::Server)?;
        let limit = match case.fault.least_wait {
            Some(wait) if wait > self.settings.limit => PATIENCE.min(self.settings.limit),
            _ => self.settings.limit,
        };
        let start_limit = match case.fault.action {
            Action::Refuse => refuses_for + limit,
            _ => self.settings.start_limit,
        };
        // Released by the first request.
        let permit = std::cell::Cell::new(Some(permit));
        let release = || drop(permit.take());
        let commands = (0..case.times.commands()).map(|command| {
            let assignment = self.setup.assignment(&probe.asked, server.url(command));
            let log = server.log();
            async move {
                let expired = until_limit(log, start_limit, limit, release);
                self.template.run(&assignment, expired).await
            }
        });
        let ends: Result<Vec<ClientEnd>, _> = join_all(commands).await.into_iter().collect();
        let ends = ends.map_err(|source| {
            let program = self.template.program();
            AuditError::CannotStart { program, source }
        })?;
        Ok(CaseRun {
            arrivals: server.log().arrivals(),
            ends,
        })
    }
}

/// Ends at the limit after the first arrival, or if there is none in time. Calls `started`
/// after the first arrival.
pub(crate) async fn until_limit(
    log: &ArrivalLog,
    start_limit: Duration,
    limit: Duration,
    started: impl Fn(),
) {
    let begun = Instant::now();
    while log.is_empty() {
        if begun.elapsed() >= start_limit {
            return;
        }
        sleep(PERIOD).await;
    }
    started();
    sleep(limit).await;
}

/// What all commands and servers of an audit use.
pub(crate) struct SharedSetup {
    /// The file to upload.
    upload: NamedTempFile,
    http2: bool,
    certificate: Option<LoopbackCertificate>,
    /// The file with the authority's certificate, or nothing.
    ca: NamedTempFile,
}

impl SharedSetup {
    fn new(protocol: AuditProtocol) -> std::io::Result<Self> {
        let certificate = match protocol.tls {
            true => Some(LoopbackCertificate::new(protocol.http2)?),
            false => None,
        };
        let ca = certificate.as_ref().map_or("", |made| &made.ca_pem);
        Ok(Self {
            upload: file(&vec![b'a'; UPLOAD])?,
            http2: protocol.http2,
            ca: file(ca.as_bytes())?,
            certificate,
        })
    }

    /// Returns the script of a server without faults.
    pub(crate) fn script(&self, number: usize) -> ServerScript {
        ServerScript {
            fault: None,
            refuses_for: Duration::ZERO,
            path: format!("/audit-{number}"),
            http2: self.http2,
            certificate: self.certificate.clone(),
        }
    }

    /// Returns what a command is asked to do.
    pub(crate) fn assignment(&self, kind: &RequestKind, url: String) -> Assignment {
        let path = |file: &NamedTempFile| file.path().to_string_lossy().into_owned();
        Assignment {
            url,
            method: kind.method.clone(),
            key: match kind.keyed {
                true => "5f2c7a0e-audit".to_owned(),
                false => String::new(),
            },
            file: path(&self.upload),
            ca: self.certificate.as_ref().map(|_| path(&self.ca)),
        }
    }
}

fn file(content: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(content)?;
    file.flush()?;
    Ok(file)
}
