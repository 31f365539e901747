//! What fault rules do to an HTTP request.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Bytes;
use socket2::Socket;
use tokio_util::sync::CancellationToken;

use super::{Place, Request, Response};
use crate::fault::{Event, Verdict};

/// Ends a connection from inside a request.
#[derive(Clone)]
pub(super) struct Cut {
    socket: Arc<Socket>,
    requested: CancellationToken,
}

impl Cut {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket: Arc::new(socket),
            requested: CancellationToken::new(),
        }
    }

    /// Resolves when the connection is to end.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Ends the connection; with a reset where the client is to see one. Never returns, because
    /// the connection that polls this is gone.
    async fn now(&self, reset: bool) -> Response {
        if reset && let Err(error) = self.socket.set_linger(Some(Duration::ZERO)) {
            tracing::debug!(%error, "cannot reset a connection");
        }
        self.requested.cancel();
        std::future::pending().await
    }
}

/// Asks the rules about a request, and answers it as they say, or as its service does.
pub(super) async fn apply<F>(
    request: &Request,
    place: &Place,
    cut: &Cut,
    serve: impl FnOnce() -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let decision = place.shared.faults.decide(&Event {
        node: place.node.id,
        service: place.service,
        opcode: None,
        key: request.path.as_bytes(),
        bucket: None,
    });
    let Some(decision) = decision else {
        return serve().await;
    };
    match decision.verdict {
        Verdict::Pass => serve().await,
        Verdict::Delay(by) => {
            tokio::time::sleep(by).await;
            serve().await
        }
        Verdict::DelayAnswer(by) => {
            let response = serve().await;
            tokio::time::sleep(by).await;
            response
        }
        Verdict::Answer(answer) => {
            let kind = if answer.json {
                "application/json"
            } else {
                "text/plain"
            };
            Response::new(answer.status, kind, answer.body.unwrap_or_default())
        }
        Verdict::Hold => {
            decision.released.cancelled().await;
            serve().await
        }
        Verdict::CutBeforeReading => cut.now(true).await,
        Verdict::CutBeforeApplying => cut.now(false).await,
        Verdict::CutAfterApplying => {
            serve().await;
            cut.now(false).await
        }
        Verdict::CutMidResponse => {
            let response = serve().await;
            cut.half(response).await
        }
        Verdict::Garble(_) => {
            let mut response = serve().await;
            let damaged: Vec<u8> = response.body.iter().map(|byte| !byte).collect();
            response.body = Bytes::from(damaged);
            response
        }
        Verdict::Silent => std::future::pending().await,
    }
}

impl Cut {
    /// Writes half of a response by hand, past the HTTP machinery, and ends the connection.
    async fn half(&self, response: Response) -> Response {
        let head = format!(
            "HTTP/1.1 {} Cut\r\ncontent-length: {}\r\n\r\n",
            response.status,
            response.body.len()
        );
        let whole = [head.as_bytes(), &response.body].concat();
        let half = &whole[..head.len() + response.body.len() / 2];
        // The socket does not block; half an answer fits its buffer or is cut even shorter.
        if let Err(error) = self.socket.send(half) {
            tracing::debug!(%error, "cannot send half an answer");
        }
        self.now(false).await
    }
}
