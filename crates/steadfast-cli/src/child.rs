//! The command that a cluster runs for: a child process that knows the cluster's addresses.

use std::ffi::OsString;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use crate::exit::not_run;
use crate::mask::mask;

/// How often the child is looked at.
const PERIOD: Duration = Duration::from_millis(10);

/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// A running command. Dropping it kills the process.
pub(crate) struct ChildCommand(Child);

impl ChildCommand {
    /// Starts a command, its name first, with additional environment variables.
    pub(crate) fn start(
        words: &[OsString],
        variables: &[(&str, String)],
    ) -> anyhow::Result<Option<Self>> {
        let Some((name, arguments)) = words.split_first() else {
            return Ok(None);
        };
        let mut command = Command::new(name);
        command.args(arguments).envs(variables.iter().cloned());
        match command.spawn() {
            Ok(process) => Ok(Some(Self(process))),
            Err(error) => {
                let name = name.to_string_lossy();
                Err(not_run(format_args!("cannot run {}: {error}", mask(&name))))
            }
        }
    }

    /// Waits for the end, and returns the exit status that shells give it.
    ///
    /// Cancel-safe: the command goes on.
    pub(crate) async fn ended(&mut self) -> anyhow::Result<u8> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(shell_status(status));
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    /// Asks the command to end, kills it if that takes long, and returns its exit status.
    ///
    /// Dropping the future leaves it to the drop of the command.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<u8> {
        self.terminate();
        if let Ok(ended) = tokio::time::timeout(GRACE, self.ended()).await {
            return ended;
        }
        self.0.kill()?;
        self.ended().await
    }

    #[cfg(unix)]
    fn terminate(&self) {
        let id = rustix::process::Pid::from_child(&self.0);
        // It may have ended meanwhile. Its number is still its own, because nobody waited.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) {
        // It may have ended meanwhile.
        let _ = self.0.kill();
    }
}

impl Drop for ChildCommand {
    fn drop(&mut self) {
        // After a wait for its end, both do nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the exit status, or 128 and the number of the signal.
fn shell_status(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return u8::try_from(128 + signal).unwrap_or(u8::MAX);
    }
    let code = status.code().unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}
