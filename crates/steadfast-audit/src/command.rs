//! Runs the client: a command in its own process group, with a limit.
//!
//! A command has ended when all of its processes have: one that it leaves may send the request
//! again. Whatever it does, nothing of it is left: the group is killed before its leader is
//! reaped, so that its number cannot belong to another group. A process that has left the group
//! is found by a variable of its environment, on Linux.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// How often a command is looked at.
const PERIOD: Duration = Duration::from_millis(5);
/// How long the processes that a command leaves are watched.
const LEFT_PROCESSES_LIMIT: Duration = Duration::from_secs(5);
/// How often they are looked for.
const SEARCH_PERIOD: Duration = Duration::from_millis(20);
/// How much of the error output is kept.
const KEPT: usize = 2048;
/// The variables in which clients look for certificates to trust: those that use OpenSSL, Go or
/// rustls, curl, requests, Node.
const TRUSTED: [&str; 4] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// The variable that marks the processes of an audit.
const MARK: &str = "AUDIT_RUN";

/// The words of the command, and how they refer to the request.
#[derive(Clone, Debug)]
pub(crate) struct CommandTemplate {
    words: Vec<OsString>,
    /// Marks the processes of this audit.
    mark: String,
    /// The number of runs, for a mark of each.
    runs: Arc<AtomicU32>,
}

/// What the command is asked to do.
#[derive(Clone, Debug)]
pub(crate) struct Assignment {
    pub(crate) url: String,
    pub(crate) method: String,
    /// The `Idempotency-Key`, or nothing.
    pub(crate) key: String,
    /// A file to upload.
    pub(crate) file: String,
    /// A file with the certificate to trust, if the server has one.
    pub(crate) ca: Option<String>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientEnd {
    /// What ended it.
    pub cause: ExitCause,
    /// Whether processes that it left ran on for 5 s, and were killed.
    pub left_processes: bool,
    /// The end of its error output.
    pub stderr: String,
    /// When it ended.
    #[serde(rename = "after_seconds", serialize_with = "crate::report::seconds")]
    pub after: Duration,
}

/// What ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// It exited with this status.
    Exited(i32),
    /// A signal that the audit did not send killed it.
    Killed,
    /// The audit stopped it at the limit of the case.
    Stopped,
}

impl CommandTemplate {
    /// Takes the words of a command, its program first.
    pub(crate) fn new(words: Vec<OsString>) -> Option<Self> {
        static AUDITS: AtomicU32 = AtomicU32::new(0);
        let number = AUDITS.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}.", std::process::id());
        let runs = Arc::default();
        (!words.is_empty()).then_some(Self { words, mark, runs })
    }

    pub(crate) fn program(&self) -> String {
        self.words[0].to_string_lossy().into_owned()
    }

    /// Runs the command until it ends or `expired` does.
    ///
    /// Dropping the future kills the command and its group.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub(crate) async fn run(
        &self,
        assignment: &Assignment,
        expired: impl Future<Output = ()>,
    ) -> io::Result<ClientEnd> {
        let begun = std::time::Instant::now();
        let mark = format!(
            "{}{}.",
            self.mark,
            self.runs.fetch_add(1, Ordering::Relaxed)
        );
        let mut command = self.command(assignment);
        let mut running = RunningCommand::start(command.env(MARK, &mark))?;
        let mut expired = std::pin::pin!(expired);
        let stopped = tokio::select! {
            biased;
            ended = running.ended() => ended.map(|()| false)?,
            () = &mut expired => true,
        };
        let after = begun.elapsed();
        if !stopped {
            let gone = timeout(LEFT_PROCESSES_LIMIT, running.all_ended(&mark));
            tokio::select! {
                _ = gone => {}
                () = expired => {}
            }
        }
        let left = running.others(&mark);
        let left_processes = !left.is_empty();
        running.kill_group(stopped);
        kill_all(left);
        let status = running.child.wait().await?;
        let cause = match status.code() {
            _ if stopped => ExitCause::Stopped,
            Some(status) => ExitCause::Exited(status),
            None => ExitCause::Killed,
        };
        let stderr = running.stderr().await;
        Ok(ClientEnd {
            cause,
            left_processes: left_processes && !stopped,
            stderr,
            after,
        })
    }

    /// Kills what is left of all runs.
    pub(crate) fn sweep(&self) {
        kill_marked(&self.mark);
    }

    /// Makes a command from the words as they are.
    pub(crate) fn bare(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command
            .args(&self.words[1..])
            .env(MARK, &self.mark)
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }

    fn command(&self, assignment: &Assignment) -> Command {
        let filled = |word: &OsString| -> OsString {
            let Some(text) = word.to_str() else {
                return word.clone();
            };
            text.replace("{url}", &assignment.url)
                .replace("{method}", &assignment.method)
                .replace("{key}", &assignment.key)
                .replace("{file}", &assignment.file)
                .replace("{ca}", assignment.ca.as_deref().unwrap_or_default())
                .into()
        };
        let mut command = Command::new(filled(&self.words[0]));
        command
            .args(self.words[1..].iter().map(filled))
            .env("AUDIT_URL", &assignment.url)
            .env("AUDIT_METHOD", &assignment.method)
            .env("AUDIT_KEY", &assignment.key)
            .env("AUDIT_FILE", &assignment.file)
            .env("AUDIT_CA", assignment.ca.as_deref().unwrap_or_default())
            // A proxy would stand between the client and the server.
            .env("NO_PROXY", "*")
            .env("no_proxy", "*")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(ca) = &assignment.ca {
            command.envs(TRUSTED.map(|name| (name, ca)));
        }
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// A command that runs. Dropping it kills its group.
pub(crate) struct RunningCommand {
    child: Child,
    stderr: JoinHandle<Vec<u8>>,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl RunningCommand {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let stderr = child.stderr.take();
        Ok(Self {
            stderr: tokio::spawn(async move {
                let mut kept = Vec::new();
                if let Some(mut stderr) = stderr {
                    let mut buffer = [0; 4096];
                    // What it prints is read to the end, so that it never waits for us.
                    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
                        kept.extend_from_slice(&buffer[..length]);
                        kept.drain(..kept.len().saturating_sub(KEPT));
                    }
                }
                kept
            }),
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)),
            child,
        })
    }

    /// Takes the input and the output, if they are pipes.
    pub(crate) fn pipes(&mut self) -> Option<(ChildStdin, ChildStdout)> {
        Some((self.child.stdin.take()?, self.child.stdout.take()?))
    }

    /// Waits for the end of the command, and leaves it to be reaped.
    ///
    /// Cancel-safe.
    #[cfg(unix)]
    async fn ended(&mut self) -> io::Result<()> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(group) = self.group else {
            return Ok(());
        };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(group), options)?.is_none() {
            sleep(PERIOD).await;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    async fn ended(&mut self) -> io::Result<()> {
        self.child.wait().await.map(drop)
    }

    /// Waits until no process with this mark is left, and none in the group. A process that
    /// forks and exits can escape one look at the list of processes, so it takes two.
    ///
    /// Cancel-safe.
    async fn all_ended(&self, mark: &str) {
        let mut looks = 0;
        while looks < 2 {
            looks = match self.others(mark).is_empty() {
                true => looks + 1,
                false => 0,
            };
            sleep(SEARCH_PERIOD).await;
        }
    }

    /// Returns the live processes of the command, without itself.
    #[cfg(target_os = "linux")]
    fn others(&self, mark: &str) -> Vec<i32> {
        let Some(leader) = self.group.map(rustix::process::Pid::as_raw_pid) else {
            return Vec::new();
        };
        // Few processes are younger, so that a look is cheap. Numbers start again at times: then
        // one is missed here, and the sweep at the end kills it.
        let younger = processes().filter(|id| *id > leader);
        younger
            .filter(|id| is_marked(*id, mark) || group(*id) == Some(leader))
            .collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn others(&self, _: &str) -> Vec<i32> {
        Vec::new()
    }

    /// Kills the group. The command was not waited for, so no other process has its number.
    #[cfg(unix)]
    pub(crate) fn kill_group(&mut self, _: bool) {
        use rustix::process::{Signal, kill_process_group};
        if let Some(group) = self.group.take() {
            // If it is gone, there is nothing to kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn kill_group(&mut self, stopped: bool) {
        if stopped {
            // It may have ended meanwhile.
            let _ = self.child.start_kill();
        }
    }

    /// Returns the end of the error output. A process that has left the group may hold it open.
    pub(crate) async fn stderr(&mut self) -> String {
        let read = timeout(Duration::from_millis(200), &mut self.stderr).await;
        self.stderr.abort();
        let bytes = read.ok().and_then(Result::ok).unwrap_or_default();
        printable(&bytes)
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        self.kill_group(true);
        self.stderr.abort();
    }
}

/// Returns the group of a live process.
#[cfg(target_os = "linux")]
fn group(id: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name, which is in brackets, may have spaces. Then: state, parent, group.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?.parse().ok()?;
    (state != "Z").then_some(group)
}

/// Decides whether the mark of a process begins so.
#[cfg(target_os = "linux")]
fn is_marked(id: i32, mark: &str) -> bool {
    let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let mark = format!("{MARK}={mark}");
    environment
        .split(|byte| *byte == 0)
        .any(|entry| entry.starts_with(mark.as_bytes()))
}

/// Kills the processes whose mark begins so.
#[cfg(target_os = "linux")]
fn kill_marked(mark: &str) {
    kill_all(processes().filter(|id| is_marked(*id, mark)).collect());
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_: &str) {}

#[cfg(target_os = "linux")]
fn kill_all(ids: Vec<i32>) {
    use rustix::process::{Pid, Signal, kill_process};
    for id in ids.into_iter().filter_map(Pid::from_raw) {
        // If it is gone, there is nothing to kill.
        let _ = kill_process(id, Signal::KILL);
    }
}

#[cfg(not(target_os = "linux"))]
fn kill_all(_: Vec<i32>) {}

#[cfg(target_os = "linux")]
fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Returns text that a terminal can print, or says that it is none.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_bad = |c: char| c == '\u{fffd}' || c.is_control() && !c.is_whitespace();
    let bad = text.chars().filter(|c| is_bad(*c)).count();
    if bad > text.chars().count() / 10 {
        return "(what it printed is not text)".to_owned();
    }
    let shown = |c: char| if is_bad(c) { '\u{fffd}' } else { c };
    text.trim().chars().map(shown).collect()
}
