//! HTTP/1.1: reads requests and does what the script says.
//!
//! It works on the bytes, because a library for HTTP hides the stages at which it breaks
//! connections.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

use super::connection::{Connection, Wire};
use super::request::{BodyLength, RequestStart, read_body, read_start};
use super::response::ScriptedResponse;
use crate::cases::Action;
use crate::journal::LoggedAttempt;

/// How much of a body is read before an early response.
pub(super) const EARLY: u64 = 16 << 10;
/// The pause between two bytes of a slow response, and their number.
pub(super) const DRIP: (Duration, usize) = (Duration::from_millis(250), 16);

/// Whether the connection can take another request.
type KeepOpen = bool;

impl Connection {
    pub(super) async fn serve_requests(&self, mut wire: Wire) -> io::Result<()> {
        while let Some(start) = read_start(&mut wire.stream).await? {
            if self.is_stray(&start.path) {
                break;
            }
            let attempt = self.record(&start.path, start.method.clone(), start.key.clone());
            if !self.serve_request(&mut wire, &start, &attempt).await? || start.closes {
                break;
            }
        }
        wire.stream.shutdown().await
    }

    async fn serve_request(
        &self,
        wire: &mut Wire,
        start: &RequestStart,
        attempt: &LoggedAttempt,
    ) -> io::Result<KeepOpen> {
        let fault = self.script.fault.filter(|_| attempt.failed);
        let action = fault.map(|(action, _)| action);
        if start.expects_continue && start.length != BodyLength::Bytes(0) {
            wire.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
            wire.stream.flush().await?;
        }
        let most = match action {
            Some(Action::RespondEarly(_)) => EARLY,
            _ => u64::MAX,
        };
        match read_body(&mut wire.stream, start.length, most).await {
            Ok(body) => attempt.note_body(body),
            Err(error) => {
                attempt.note_unapplied();
                return Err(error);
            }
        }
        let response = match action {
            Some(Action::CloseUnanswered) => return Ok(false),
            Some(Action::RedirectThenClose(_)) if Self::is_moved(&start.path) => return Ok(false),
            Some(Action::Reset) => {
                wire.reset_on_close()?;
                return Ok(false);
            }
            Some(Action::CutResponse) => {
                let whole = ScriptedResponse::success().to_http1(true);
                send(wire, &whole[..whole.len() - 6]).await?;
                return Ok(false);
            }
            Some(Action::StaySilent) => {
                // Until the client goes away, or sends something that it should not.
                wire.stream.read_u8().await?;
                return Ok(false);
            }
            Some(Action::Drip) => {
                drip(wire).await?;
                attempt.succeed();
                return Ok(true);
            }
            Some(action) => self.response(action, &start.path, attempt),
            None => ScriptedResponse::success(),
        };
        send(wire, &response.to_http1(start.method != "HEAD")).await?;
        Ok(!matches!(action, Some(Action::RespondEarly(_))))
    }
}

async fn send(wire: &mut Wire, text: &str) -> io::Result<()> {
    wire.stream.write_all(text.as_bytes()).await?;
    wire.stream.flush().await
}

/// Sends a response slowly.
async fn drip(wire: &mut Wire) -> io::Result<()> {
    let (pause, bytes) = DRIP;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
    send(wire, &head).await?;
    for _ in 0..bytes {
        sleep(pause).await;
        send(wire, "a").await?;
    }
    Ok(())
}
