//! A connection of the scripted server: reads requests and does what the script says.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::request::{BodyLength, RequestStart, parse, read_body, read_start};
use super::response::{failure, redirect, success};
use super::{ServerScript, reset_on_close};
use crate::cases::Action;
use crate::journal::{ArrivalLog, HttpArrival};

/// How much of a body is read before an early response.
const EARLY: u64 = 16 << 10;
/// The pause between two bytes of a slow response, and their number.
const DRIP: (Duration, usize) = (Duration::from_millis(250), 16);

/// What the connections of a server share.
#[derive(Clone)]
pub(super) struct Connection {
    script: Arc<ServerScript>,
    log: ArrivalLog,
    /// The address that redirects lead to.
    nowhere: SocketAddr,
}

/// Whether the connection can take another request.
type KeepOpen = bool;

impl Connection {
    pub(super) fn new(script: ServerScript, log: ArrivalLog, nowhere: SocketAddr) -> Self {
        Self {
            script: Arc::new(script),
            log,
            nowhere,
        }
    }

    /// Serves a connection until its end. Errors of the connection end it too: what arrived is
    /// in the log.
    pub(super) async fn serve(self, stream: TcpStream) {
        let served = match self.script.fault {
            Some((Action::CloseUnread, _)) => self.serve_unread(stream).await,
            _ => self.serve_requests(stream).await,
        };
        // A client that goes away is no error of the server.
        drop(served);
    }

    /// Closes the connection while the request waits in the kernel, which resets it.
    async fn serve_unread(&self, stream: TcpStream) -> io::Result<()> {
        let mut seen = [0; 1024];
        let length = stream.peek(&mut seen).await?;
        if length == 0 {
            return Ok(());
        }
        let start = parse(&seen[..length]).ok();
        if start
            .as_ref()
            .is_some_and(|start| self.is_stray(&start.path))
        {
            return Ok(());
        }
        let arrival = self.arrival(start.as_ref());
        let Some(index) = self.log.record_failing(arrival, |index| self.fails(index)) else {
            return self.serve_requests(stream).await;
        };
        drop(stream);
        self.log.finish(index);
        Ok(())
    }

    async fn serve_requests(&self, stream: TcpStream) -> io::Result<()> {
        if matches!(self.script.fault, Some((Action::Reset, _))) {
            reset_on_close(&stream)?;
        }
        let mut stream = BufStream::new(stream);
        while let Some(start) = read_start(&mut stream).await? {
            if self.is_stray(&start.path) {
                break;
            }
            let arrival = self.arrival(Some(&start));
            let index = self.log.record(arrival, |index| self.fails(index));
            let served = self.serve_request(&mut stream, &start, index).await;
            self.log.finish(index);
            if !served? || start.closes {
                break;
            }
        }
        stream.shutdown().await
    }

    /// Decides whether a request belongs to another case, whose server had this port before.
    fn is_stray(&self, path: &str) -> bool {
        path.starts_with("/audit-") && !path.starts_with(&format!("{}/", self.script.path))
    }

    /// Decides whether the attempt with this index fails. A refused one does not arrive.
    fn fails(&self, index: usize) -> bool {
        match self.script.fault {
            None | Some((Action::Refuse, _)) => false,
            Some((_, times)) => times.includes(index),
        }
    }

    fn arrival(&self, start: Option<&RequestStart>) -> HttpArrival {
        HttpArrival {
            at: Duration::ZERO,
            over: None,
            command: start.map_or(0, |start| self.command(&start.path)),
            method: start.map(|start| start.method.clone()),
            key: start.and_then(|start| start.key.clone()),
            body: 0,
            failed: false,
        }
    }

    /// Returns the number of the command that a path belongs to.
    fn command(&self, path: &str) -> usize {
        let rest = path.strip_prefix(&format!("{}/", self.script.path));
        let digits = rest.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    async fn serve_request(
        &self,
        stream: &mut BufStream<TcpStream>,
        start: &RequestStart,
        index: usize,
    ) -> io::Result<KeepOpen> {
        let fault = self.script.fault.filter(|_| self.log.fails(index));
        let action = fault.map(|(action, _)| action);
        if start.expects_continue && start.length != BodyLength::Bytes(0) {
            send(stream, "HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if let Some(Action::RespondEarly(status)) = action {
            let read = read_body(stream, start.length, EARLY).await?;
            self.log.note_body(index, read);
            send(stream, &failure(status, None)).await?;
            return Ok(false);
        }
        let body = read_body(stream, start.length, u64::MAX).await?;
        self.log.note_body(index, body);
        match action {
            None => send(stream, &without_body(start, success())).await?,
            Some(Action::CloseUnanswered | Action::Reset) => return Ok(false),
            Some(Action::CutResponse) => {
                let whole = success();
                send(stream, &whole[..whole.len() - 6]).await?;
                return Ok(false);
            }
            Some(Action::StaySilent) => {
                // Until the client goes away, or sends something that it should not.
                stream.read_u8().await?;
                return Ok(false);
            }
            Some(Action::Respond(status)) => {
                send(stream, &without_body(start, failure(status, None))).await?;
            }
            Some(Action::RespondLater(status, later)) => {
                send(stream, &without_body(start, failure(status, Some(later)))).await?;
            }
            Some(Action::Redirect(status)) => {
                let target = format!("http://{}/", self.nowhere);
                send(stream, &redirect(status, &target)).await?;
            }
            Some(Action::Drip) => {
                drip(stream).await?;
                self.log.succeed(index);
            }
            // Handled before a request is read.
            Some(Action::Refuse | Action::CloseUnread | Action::RespondEarly(_)) => {}
        }
        Ok(true)
    }
}

/// Removes the body of a response to HEAD.
fn without_body(start: &RequestStart, response: String) -> String {
    match response.find("\r\n\r\n") {
        Some(end) if start.method == "HEAD" => response[..end + 4].to_owned(),
        _ => response,
    }
}

async fn send(stream: &mut BufStream<TcpStream>, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await
}

/// Sends a response slowly.
async fn drip(stream: &mut BufStream<TcpStream>) -> io::Result<()> {
    let (pause, bytes) = DRIP;
    send(
        stream,
        &format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n"),
    )
    .await?;
    for _ in 0..bytes {
        sleep(pause).await;
        send(stream, "a").await?;
    }
    Ok(())
}
