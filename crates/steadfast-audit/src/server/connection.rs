//! A connection of the scripted server, up to its first request: TCP, TLS, the protocol.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufStream};
use tokio::net::TcpStream;

use super::ServerScript;
use super::request::{BodyLength, parse};
use super::response::ScriptedResponse;
use crate::cases::Action;
use crate::journal::{ArrivalLog, HttpArrival, LoggedAttempt};

/// The last part of the path that a redirect leads to.
const MOVED: &str = "/moved";

/// What the connections of a server share.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) script: Arc<ServerScript>,
    pub(super) log: ArrivalLog,
    /// The address of the server.
    address: SocketAddr,
    /// The address of a server that refuses connections.
    nowhere: SocketAddr,
}

/// A connection to a client, with or without TLS.
pub(super) struct Wire {
    pub(super) stream: BufStream<Box<dyn Duplex>>,
    socket: socket2::Socket,
}

/// A stream in both directions.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Wire {
    /// Makes the close of the connection a reset.
    pub(super) fn reset_on_close(&self) -> io::Result<()> {
        self.socket.set_linger(Some(Duration::ZERO))
    }
}

impl Connection {
    pub(super) fn new(
        script: ServerScript,
        log: ArrivalLog,
        address: SocketAddr,
        nowhere: SocketAddr,
    ) -> Self {
        Self {
            script: Arc::new(script),
            log,
            address,
            nowhere,
        }
    }

    /// Serves a connection until its end. What arrived is in the log.
    pub(super) async fn serve(self, stream: TcpStream) {
        // A client that goes away is not an error of the server. If it sent no request at all, this
        // says why.
        if let Err(error) = self.serve_connection(stream).await {
            self.log.note_problem(error.to_string());
        }
    }

    async fn serve_connection(&self, stream: TcpStream) -> io::Result<()> {
        let socket = socket2::SockRef::from(&stream).try_clone()?;
        let action = self.script.fault.map(|(action, _)| action);
        if action == Some(Action::CutHandshake) {
            // Until the client has begun the handshake.
            stream.peek(&mut [0]).await?;
            let cut = HttpArrival::unread();
            let failing = self.log.record_failing(cut, |index| self.fails(index));
            if failing.is_some() {
                return Ok(());
            }
        }
        let stream: Box<dyn Duplex> = match &self.script.certificate {
            Some(certificate) => {
                let accepted = certificate.acceptor.accept(stream).await;
                Box::new(accepted.map_err(|error| {
                    io::Error::other(format!("the TLS handshake failed: {error}"))
                })?)
            }
            None => Box::new(stream),
        };
        let stream = BufStream::new(stream);
        let mut wire = Wire { stream, socket };
        if action == Some(Action::CloseUnread) && self.closes_unread(&mut wire).await? {
            return Ok(());
        }
        match self.script.http2 {
            true => self.serve_streams(wire).await,
            false => self.serve_requests(wire).await,
        }
    }

    /// Leaves the request unread, if it is one that fails. Then the connection is reset.
    async fn closes_unread(&self, wire: &mut Wire) -> io::Result<bool> {
        let seen = wire.stream.fill_buf().await?;
        let Ok(start) = parse(seen) else {
            return Ok(seen.is_empty());
        };
        if self.is_stray(&start.path) {
            return Ok(true);
        }
        let arrival = self.arrival(&start.path, start.method.clone(), start.key.clone());
        let failing = self.log.record_failing(arrival, |index| self.fails(index));
        let Some(attempt) = failing else {
            return Ok(false);
        };
        if start.expects_continue && start.length != BodyLength::Bytes(0) {
            attempt.note_unapplied();
        }
        wire.reset_on_close()?;
        Ok(true)
    }

    /// Records a request that was read.
    pub(super) fn record(&self, path: &str, method: String, key: Option<String>) -> LoggedAttempt {
        let arrival = self.arrival(path, method, key);
        self.log.record(arrival, |index| self.fails(index))
    }

    /// Decides whether a request belongs to another case, whose server had this port before.
    pub(super) fn is_stray(&self, path: &str) -> bool {
        path.starts_with("/audit-") && !path.starts_with(&format!("{}/", self.script.path))
    }

    /// Returns the response to a request that fails with one.
    pub(super) fn response(
        &self,
        action: Action,
        path: &str,
        attempt: &LoggedAttempt,
    ) -> ScriptedResponse {
        match action {
            Action::Respond(status) | Action::RespondEarly(status) => {
                ScriptedResponse::failure(status, None)
            }
            Action::RespondLater(status, later) => ScriptedResponse::failure(status, Some(later)),
            Action::Redirect(status)
            | Action::RedirectHere(status)
            | Action::RedirectThenClose(status) => {
                if status == 307 {
                    attempt.note_unapplied();
                }
                ScriptedResponse::redirect(status, self.redirect_target(action, path))
            }
            // These have no response, or belong to another protocol.
            Action::Refuse
            | Action::CutHandshake
            | Action::CloseUnread
            | Action::CloseUnanswered
            | Action::Reset
            | Action::CutResponse
            | Action::StaySilent
            | Action::Drip
            | Action::GoAway
            | Action::GoAwayLate
            | Action::RefuseStream
            | Action::ResetStream => ScriptedResponse::success(),
        }
    }

    /// Returns the address that a redirect leads to.
    fn redirect_target(&self, action: Action, path: &str) -> String {
        let scheme = self.script.scheme();
        match action {
            Action::Redirect(_) => format!("{scheme}://{}/", self.nowhere),
            _ => format!("{scheme}://{}{path}{MOVED}", self.address),
        }
    }

    /// Decides whether a request has followed a redirect to another path.
    pub(super) fn is_moved(path: &str) -> bool {
        path.ends_with(MOVED)
    }

    /// Decides whether the attempt with this index fails. A refused one does not arrive.
    pub(super) fn fails(&self, index: usize) -> bool {
        match self.script.fault {
            None | Some((Action::Refuse, _)) => false,
            Some((_, times)) => times.includes(index),
        }
    }

    fn arrival(&self, path: &str, method: String, key: Option<String>) -> HttpArrival {
        HttpArrival {
            command: self.command(path),
            method: Some(method),
            key,
            ..HttpArrival::unread()
        }
    }

    /// Returns the number of the command that a path belongs to.
    fn command(&self, path: &str) -> usize {
        let rest = path.strip_prefix(&format!("{}/", self.script.path));
        let digits = rest.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}
