//! What ends a wait for the peer before the peer does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::Sleep;

use crate::services::host::Host;

/// The deadline, and the end of the client.
pub(super) struct Watch {
    deadline: Option<Pin<Box<Sleep>>>,
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// Why a wait was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// The time is up.
    Deadline,
    /// The client was closed.
    Closed,
}

impl Watch {
    pub(super) fn new(host: &Arc<dyn Host>, deadline: Option<Instant>) -> Self {
        Self {
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into()))),
            closed: Box::pin(closed(host.clone())),
        }
    }

    /// Ready when the wait is to end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Interrupted> {
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Interrupted::Closed);
        }
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(cx).map(|()| Interrupted::Deadline),
            None => Poll::Pending,
        }
    }

    /// What a future yields, unless the wait for it is ended. What has come
    /// counts, also if it came with the deadline.
    pub(super) async fn over<F: Future + Unpin>(
        &mut self,
        mut future: F,
    ) -> Result<F::Output, Interrupted> {
        std::future::poll_fn(|cx| match Pin::new(&mut future).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }
}

/// Completes when the client is closed.
async fn closed(host: Arc<dyn Host>) {
    let mut changes = host.changes();
    loop {
        changes.borrow_and_update();
        if host.is_closed() {
            return;
        }
        if changes.changed().await.is_err() {
            // Nobody is left who could close it.
            std::future::pending().await
        }
    }
}
