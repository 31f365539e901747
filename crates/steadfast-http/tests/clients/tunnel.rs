//! A connection through a tunnel, whose far end breaks while a request is in flight.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use steadfast_http::tower::HttpRetryLayer;
use steadfast_http::{HttpRetry, tower::ReplayBody};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower::{Layer, ServiceExt, service_fn};

use super::raw::Server;
use crate::common::clients::{Body, ended, request};
use crate::common::promises::quick;
use crate::common::{get, post};

/// Fails as soon as a response arrives, with an error that a connect attempt has, too.
struct Tunnel(TcpStream);

impl AsyncRead for Tunnel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(cx, buffer);
        read.map(|_| Err(io::ErrorKind::ConnectionRefused.into()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Connection for Tunnel {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

#[tokio::test]
async fn a_refused_connection_behind_an_open_one_does_not_prove_that_nothing_was_sent() {
    for (method, carried_out) in [("POST", 1), ("GET", 5)] {
        let server = Server::start(false, Vec::new()).await;
        let address = server.address;
        let connector = service_fn(move |_: Uri| {
            Box::pin(async move {
                let stream = TcpStream::connect(address).await?;
                io::Result::Ok(TokioIo::new(Tunnel(stream)))
            })
        });
        let hyper =
            legacy::Client::builder(TokioExecutor::new()).build::<_, ReplayBody<Body>>(connector);
        let client = HttpRetryLayer::new(HttpRetry::new(quick()).unwrap()).layer(hyper);
        let ask = match method {
            "POST" => post(&server.uri(), b"pay 5"),
            _ => get(&server.uri()),
        };
        let ended = ended(client.oneshot(request(ask)).await);
        let case = format!("{method}: {ended:?}");
        assert_eq!(server.carried_out(), carried_out, "{case}");
        assert_eq!(ended.ambiguous, method == "POST", "{case}");
    }
}
