//! HTTP/2: does what the script says to each stream.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use tokio::time::{sleep, timeout};

use super::connection::{Connection, Wire};
use super::http1::{DRIP, EARLY};
use super::response::ScriptedResponse;
use crate::cases::Action;
use crate::journal::{HttpArrival, LoggedAttempt};

/// How long a connection is read after its end, so that the client sees why it ended.
const LINGER: Duration = Duration::from_secs(10);

/// Holds a whole upload, so that it does not wait for the server.
const WINDOW: u32 = 4 << 20;

/// What follows a stream on its connection.
#[derive(Clone, Copy, PartialEq)]
enum AfterStream {
    Open,
    Close,
    Reset,
    GoAway,
}

impl Connection {
    pub(super) async fn serve_streams(&self, mut wire: Wire) -> io::Result<()> {
        let mut settings = h2::server::Builder::new();
        settings.initial_window_size(WINDOW);
        settings.initial_connection_window_size(WINDOW);
        let mut connection = settings
            .handshake(&mut wire.stream)
            .await
            .map_err(|error| io::Error::other(format!("the client sent no HTTP/2: {error}")))?;
        if let Some((Action::GoAway, _)) = self.script.fault {
            let refused = HttpArrival::unread();
            let failing = self.log.record_failing(refused, |index| self.fails(index));
            if let Some(attempt) = failing {
                connection.abrupt_shutdown(Reason::NO_ERROR);
                // An error says that it is closed, too.
                let _ = poll_fn(|context| connection.poll_closed(context)).await;
                drop((attempt, connection));
                let mut sink = tokio::io::sink();
                let read = tokio::io::copy(&mut wire.stream, &mut sink);
                return timeout(LINGER, read).await?.map(drop);
            }
        }
        let mut streams = FuturesUnordered::new();
        let end = loop {
            tokio::select! {
                accepted = connection.accept() => match accepted {
                    Some(Ok((request, respond))) => streams.push(self.serve_stream(request, respond)),
                    Some(Err(error)) => return Err(io::Error::other(error)),
                    None => return Ok(()),
                },
                Some(after) = streams.next() => match after {
                    AfterStream::Open => {}
                    AfterStream::GoAway => connection.abrupt_shutdown(Reason::NO_ERROR),
                    end => break end,
                },
            }
        };
        // Writes what is left.
        poll_fn(|context| {
            let _ = connection.poll_accept(context);
            Poll::Ready(())
        })
        .await;
        drop((streams, connection));
        match end {
            AfterStream::Reset => wire.reset_on_close(),
            _ => Ok(()),
        }
    }

    async fn serve_stream(
        &self,
        request: http::Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
    ) -> AfterStream {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if self.is_stray(path) {
            return AfterStream::Close;
        }
        let key = head.headers.get("idempotency-key");
        let key = key.map(|key| String::from_utf8_lossy(key.as_bytes()).into_owned());
        let key = key.filter(|key| !key.is_empty());
        let attempt = self.record(path, head.method.to_string(), key);
        // A stream that ends early ends the attempt.
        let served = self.act(path, body, &mut respond, &attempt).await;
        served.unwrap_or(AfterStream::Open)
    }

    async fn act(
        &self,
        path: &str,
        mut body: RecvStream,
        respond: &mut SendResponse<Bytes>,
        attempt: &LoggedAttempt,
    ) -> Result<AfterStream, h2::Error> {
        let fault = self.script.fault.filter(|_| attempt.failed);
        let action = fault.map(|(action, _)| action);
        if action == Some(Action::RefuseStream) {
            respond.send_reset(Reason::REFUSED_STREAM);
            return Ok(AfterStream::Open);
        }
        let most = match action {
            Some(Action::RespondEarly(_)) => EARLY,
            _ => u64::MAX,
        };
        if let Err(error) = read_body(&mut body, most, attempt).await {
            attempt.note_unapplied();
            return Err(error);
        }
        let response = match action {
            Some(Action::CloseUnanswered) => return Ok(AfterStream::Close),
            Some(Action::RedirectThenClose(_)) if Self::is_moved(path) => {
                return Ok(AfterStream::Close);
            }
            Some(Action::Reset) => return Ok(AfterStream::Reset),
            Some(Action::GoAwayLate) => return Ok(AfterStream::GoAway),
            Some(Action::ResetStream) => {
                respond.send_reset(Reason::INTERNAL_ERROR);
                return Ok(AfterStream::Open);
            }
            Some(Action::StaySilent) => {
                poll_fn(|context| respond.poll_reset(context)).await?;
                return Ok(AfterStream::Open);
            }
            Some(Action::Drip) => {
                drip(respond).await?;
                attempt.succeed();
                return Ok(AfterStream::Open);
            }
            Some(Action::CutResponse) | None => ScriptedResponse::success(),
            Some(action) => self.response(action, path, attempt),
        };
        let head = response.to_head().expect("the table is valid");
        let mut stream = respond.send_response(head, false)?;
        if action == Some(Action::CutResponse) {
            let half = response.body.len() / 2;
            stream.send_data(response.body[..half].into(), false)?;
            return Ok(AfterStream::Close);
        }
        stream.send_data(response.body.into(), true)?;
        Ok(AfterStream::Open)
    }
}

async fn read_body(
    body: &mut RecvStream,
    most: u64,
    attempt: &LoggedAttempt,
) -> Result<(), h2::Error> {
    let mut read = 0;
    while read < most {
        let Some(data) = body.data().await else {
            break;
        };
        let length = data?.len();
        body.flow_control().release_capacity(length)?;
        read += length as u64;
        attempt.note_body(read);
    }
    Ok(())
}

/// Sends a response slowly.
async fn drip(respond: &mut SendResponse<Bytes>) -> Result<(), h2::Error> {
    let (pause, bytes) = DRIP;
    let mut stream = respond.send_response(http::Response::new(()), false)?;
    for number in 1..=bytes {
        sleep(pause).await;
        stream.send_data(Bytes::from_static(b"a"), number == bytes)?;
    }
    Ok(())
}
