//! The prompt for a password, without echo.

use std::io;

use tokio::sync::oneshot;

use crate::exit::{interrupted, usage};
use crate::signals::INTERRUPTED;

/// Asks for a password on the terminal.
///
/// A separate thread waits for the input, so that signals are seen meanwhile. Dropping the
/// future restores the terminal; the thread ends with the process.
pub(crate) async fn password(user: &str) -> anyhow::Result<String> {
    let _terminal = TerminalSettings::save();
    let prompt = format!("Password of {user}: ");
    let (send, read) = oneshot::channel();
    std::thread::spawn(move || {
        // Nobody waits for the password if a signal came first.
        let _ = send.send(rpassword::prompt_password(prompt));
    });
    match read.await {
        Ok(Ok(password)) => Ok(password),
        Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {
            Err(interrupted(INTERRUPTED))
        }
        Ok(Err(error)) => Err(usage(format_args!("cannot read the password: {error}"))),
        Err(_) => Err(usage("cannot read the password")),
    }
}

/// The settings of the terminal before the prompt. Dropping them restores the terminal,
/// since a prompt that a signal ends does not.
#[cfg(unix)]
struct TerminalSettings(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl TerminalSettings {
    fn save() -> Self {
        Self(rustix::termios::tcgetattr(io::stdin()).ok())
    }
}

#[cfg(unix)]
impl Drop for TerminalSettings {
    fn drop(&mut self) {
        if let Some(settings) = &self.0 {
            let now = rustix::termios::OptionalActions::Now;
            // Without a terminal there is nothing to restore.
            let _ = rustix::termios::tcsetattr(io::stdin(), now, settings);
        }
    }
}

#[cfg(not(unix))]
struct TerminalSettings;

#[cfg(not(unix))]
impl TerminalSettings {
    fn save() -> Self {
        Self
    }
}
