//! Plays a plan in its own process, within a limit of real time.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::{Context, bail};
use steadfast_sim::{RunOutcome, RunPlan};

/// Starts `program` to play a plan, and waits for the outcome. A run that takes longer than
/// `limit` is killed: a task that never waits stops virtual time, and with it every limit inside
/// of the simulation.
///
/// # Errors
/// If the process cannot start, has no outcome, or takes too long.
pub(super) fn play(program: &Path, plan: &RunPlan, limit: Duration) -> anyhow::Result<RunOutcome> {
    let mut command = Command::new(program);
    // Ctrl-C in the terminal is for this process, which waits for seeds under way.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .args(["simulate", "--json", "--plan", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start a process")?;
    let mut input = child.stdin.take().context("the process has no input")?;
    input.write_all(serde_json::to_string(plan)?.as_bytes())?;
    drop(input);
    let (stdout, stderr) = outputs(&mut child, limit)?;
    serde_json::from_slice(&stdout).or_else(|_| {
        let text = String::from_utf8_lossy(&stderr);
        bail!("{}", text.trim().trim_start_matches("error: "))
    })
}

/// Reads both outputs to their ends, and waits for the process.
fn outputs(child: &mut Child, limit: Duration) -> anyhow::Result<(Vec<u8>, Vec<u8>)> {
    let mut stdout = child.stdout.take().context("the process has no output")?;
    let mut stderr = child.stderr.take().context("the process has no output")?;
    let (ended, end) = channel();
    std::thread::scope(|scope| {
        let errors = scope.spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).map(|_| text)
        });
        scope.spawn(move || {
            let mut text = Vec::new();
            // The other side waits for as long as this thread runs.
            let _ = ended.send(stdout.read_to_end(&mut text).map(|_| text));
        });
        let output = end.recv_timeout(limit);
        if output.is_err() {
            child.kill().context("cannot kill a process")?;
        }
        child.wait()?;
        let errors = errors.join().expect("reading does not panic")?;
        match output {
            Ok(output) => Ok((output?, errors)),
            Err(RecvTimeoutError::Timeout) => {
                bail!("the run takes more than {limit:?} of real time")
            }
            Err(RecvTimeoutError::Disconnected) => bail!("the process has no output"),
        }
    })
}
