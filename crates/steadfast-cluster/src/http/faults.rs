//! Applies faults to HTTP requests.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use steadfast_os::net::ResetOnClose;
use tokio_util::sync::CancellationToken;

use super::message::{BrokenOff, ResponseBody};
use super::{HttpRequest, HttpResponse, HttpSession};
use crate::fault::{Effect, IncomingRequest};

/// Ends a connection from inside a request.
#[derive(Clone)]
pub(super) struct Cut {
    reset: Arc<ResetOnClose>,
    requested: CancellationToken,
}

impl Cut {
    pub(super) fn new(reset: ResetOnClose) -> Self {
        Self {
            reset: Arc::new(reset),
            requested: CancellationToken::new(),
        }
    }

    /// The token that ends the connection when it is cancelled.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.requested
    }

    /// Resolves when the connection is to end.
    pub(super) async fn requested(&self) {
        self.requested.cancelled().await;
    }

    /// Ends the connection; with a reset where the client is to see one. Never returns, because
    /// the connection that polls this is gone.
    async fn now(&self, reset: bool) -> HttpResponse {
        if reset {
            self.reset.set();
        }
        self.requested.cancel();
        std::future::pending().await
    }
}

/// Asks the rules about a request, and answers it as they say, or as its service does.
pub(super) async fn apply<F>(
    request: &HttpRequest,
    session: &HttpSession,
    cut: &Cut,
    serve: impl FnOnce() -> F,
) -> HttpResponse
where
    F: Future<Output = HttpResponse>,
{
    let fired = session.shared.faults.fire(&IncomingRequest {
        node: session.node.id,
        service: session.service,
        opcode: None,
        key: request.path.as_bytes(),
        bucket: None,
    });
    let Some(fired) = fired else {
        return serve().await;
    };
    match fired.effect {
        Effect::Pass => serve().await,
        Effect::Delay(by) => {
            tokio::time::sleep(by).await;
            serve().await
        }
        Effect::DelayAnswer(by) => {
            let response = serve().await;
            tokio::time::sleep(by).await;
            response
        }
        Effect::Answer(answer) => {
            let kind = if answer.json {
                "application/json"
            } else {
                "text/plain"
            };
            HttpResponse::new(answer.status, kind, answer.body.unwrap_or_default())
        }
        Effect::Hold => {
            fired.removed.cancelled().await;
            serve().await
        }
        Effect::CutBeforeReading => cut.now(true).await,
        Effect::CutBeforeApplying => cut.now(false).await,
        Effect::CutAfterApplying => {
            serve().await;
            cut.now(false).await
        }
        Effect::CutMidResponse => half(serve().await).await,
        Effect::Garble(_) => {
            let response = serve().await;
            let damage = |piece: Bytes| {
                let mut piece = piece.to_vec();
                for byte in &mut piece {
                    *byte = !*byte;
                }
                Bytes::from(piece)
            };
            HttpResponse {
                body: match response.body {
                    ResponseBody::Whole(bytes) => ResponseBody::Whole(damage(bytes)),
                    ResponseBody::Stream(pieces) => {
                        ResponseBody::Stream(Box::pin(pieces.map(move |piece| piece.map(damage))))
                    }
                },
                ..response
            }
        }
        Effect::Silent => std::future::pending().await,
        Effect::Mute => {
            serve().await;
            std::future::pending().await
        }
    }
}

/// The first half of a response, and then the end of the connection. Of a body that streams,
/// the first half of its first piece.
async fn half(response: HttpResponse) -> HttpResponse {
    let declared = match &response.body {
        ResponseBody::Whole(bytes) => Some(bytes.len()),
        ResponseBody::Stream(_) => None,
    };
    let first = response.body.into_pieces().next().await;
    let first = first.and_then(Result::ok).unwrap_or_default();
    let pieces = stream::iter([Ok(first.slice(..first.len() / 2))]).chain(broken_off());
    let halved = HttpResponse {
        body: ResponseBody::Stream(Box::pin(pieces)),
        ..response
    };
    match declared {
        Some(length) => halved.header(CONTENT_LENGTH, HeaderValue::from(length)),
        None => halved,
    }
}

/// The end of a body that is cut. What was written before is flushed first, because a body that
/// has nothing to give for a moment makes the connection flush.
pub(super) fn broken_off() -> impl stream::Stream<Item = Result<Bytes, BrokenOff>> {
    stream::once(async {
        tokio::task::yield_now().await;
        Err(BrokenOff)
    })
}
