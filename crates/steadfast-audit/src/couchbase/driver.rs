//! The driver: a process that reads one command a line, and answers each with a line.

use std::io;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::command::{CommandTemplate, RunningCommand};
use crate::run::AuditError;

/// A longer line is not an answer.
const LONGEST_LINE: u64 = 64 << 10;

/// A running driver. Dropping it kills its process group.
pub(super) struct Driver {
    process: RunningCommand,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

/// What a driver says about an operation.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct DriverAnswer {
    pub(super) id: u64,
    /// Whether it succeeded.
    #[serde(default)]
    pub(super) ok: bool,
    /// The kind of error.
    pub(super) error: Option<String>,
    /// Whether the SDK says that the operation may have been applied.
    pub(super) ambiguous: Option<bool>,
    /// The SDK's reasons for retries.
    #[serde(default)]
    pub(super) reasons: Vec<String>,
    /// The SDK has no such operation.
    #[serde(default)]
    pub(super) unsupported: bool,
    /// The name and the version of the SDK, for `connect`.
    pub(super) sdk: Option<String>,
    /// When the answer came.
    #[serde(skip)]
    pub(super) after: Duration,
}

impl DriverAnswer {
    /// Stands for the answer of a driver that gave none.
    pub(super) fn lost(error: &AuditError, after: Duration) -> Self {
        let error = Some(error.to_string());
        Self {
            error,
            after,
            ..Self::default()
        }
    }
}

impl Driver {
    /// Starts a driver.
    ///
    /// # Errors
    /// If the command cannot be started.
    pub(super) fn start(template: &CommandTemplate) -> Result<Self, AuditError> {
        let mut command = template.bare();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let cannot_start = |source| AuditError::CannotStart {
            program: template.program(),
            source,
        };
        let mut process = RunningCommand::start(&mut command).map_err(cannot_start)?;
        let missing = || cannot_start(io::ErrorKind::BrokenPipe.into());
        let (input, output) = process.pipes().ok_or_else(missing)?;
        Ok(Self {
            process,
            input,
            output: BufReader::new(output),
            number: 0,
        })
    }

    /// Sends a command and waits for its answer.
    ///
    /// # Errors
    /// If the driver ends, takes longer than `limit`, or answers with something else.
    pub(super) async fn ask(
        &mut self,
        operation: &str,
        mut fields: Value,
        limit: Duration,
    ) -> Result<DriverAnswer, AuditError> {
        self.number += 1;
        fields["id"] = json!(self.number);
        fields["do"] = json!(operation);
        let begun = Instant::now();
        let line = format!("{fields}\n");
        let asked = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await?;
            let mut answer = Vec::new();
            (&mut self.output)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut answer)
                .await?;
            io::Result::Ok(answer)
        };
        let answer = match timeout(limit, asked).await {
            Ok(Ok(answer)) if !answer.is_empty() => answer,
            Ok(_) => return Err(self.failed(operation, "ended").await),
            Err(_) => {
                let problem = format!("did not answer within {}", crate::report::show(limit));
                return Err(self.failed(operation, &problem).await);
            }
        };
        let after = begun.elapsed();
        match serde_json::from_slice::<DriverAnswer>(&answer) {
            Ok(parsed) if parsed.id == self.number => Ok(DriverAnswer { after, ..parsed }),
            _ => {
                let shown: String = String::from_utf8_lossy(&answer)
                    .trim()
                    .chars()
                    .take(200)
                    .collect();
                let shown = shown.escape_debug();
                let problem = format!(
                    "answered with something else than a line of JSON with the id {}: {shown}",
                    self.number
                );
                Err(self.failed(operation, &problem).await)
            }
        }
    }

    /// Kills the driver and says why.
    async fn failed(&mut self, operation: &str, problem: &str) -> AuditError {
        self.process.kill_group(true);
        let stderr = self.process.stderr().await;
        AuditError::Driver {
            problem: format!("{problem}, asked for {operation}"),
            output: match stderr.as_str() {
                "" => String::new(),
                text => format!("; it printed:\n{text}"),
            },
        }
    }
}
