//! A minimal HTTP server on its own thread.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};

use http::{Request, Response};
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::server::Grpc;
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::runtime;

/// Request and answer alike.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

pub(crate) struct Server {
    http: SocketAddr,
    grpc: SocketAddr,
}

impl Server {
    /// Starts it on its own thread, so that it adds nothing to the caller's.
    pub(crate) fn start() -> Self {
        let (server, serving) = Self::listen();
        std::thread::spawn(move || runtime().block_on(serving));
        server
    }

    /// Starts it on the caller's thread. Two threads would take turns in another order
    /// in every run; one thread always takes the same instructions.
    pub(crate) fn start_on(runtime: &Runtime) -> Self {
        let (server, serving) = Self::listen();
        runtime.spawn(serving);
        server
    }

    fn listen() -> (Self, impl Future<Output = ()> + Send) {
        let (http, http_address) = listen();
        let (grpc, grpc_address) = listen();
        let serving = async {
            tokio::spawn(serve_grpc(grpc));
            serve_http(http).await;
        };
        let server = Self {
            http: http_address,
            grpc: grpc_address,
        };
        (server, serving)
    }

    pub(crate) fn http_uri(&self) -> String {
        format!("http://{}/", self.http)
    }

    pub(crate) fn grpc_uri(&self) -> String {
        format!("http://{}", self.grpc)
    }
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.set_nonblocking(true).expect("it is a socket");
    let address = listener.local_addr().expect("it is bound");
    (listener, address)
}

async fn serve_http(listener: TcpListener) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("there is a runtime");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(answer_all(stream));
    }
}

/// Every request of the clients is one head and a body that comes with it, so
/// what is read between two answers is one request.
async fn answer_all(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::with_capacity(8192);
    loop {
        request.clear();
        while !is_whole(&request) {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/x-amz-json-1.0\r\n\r\n{}")
            .await?;
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1);
    let length = length
        .and_then(|length| length.lines().next()?.parse().ok())
        .unwrap_or(0);
    request.len() >= end + 4 + length
}

async fn serve_grpc(listener: TcpListener) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("there is a runtime");
    let echo = service_fn(|request: Request<Body>| async {
        let echo = service_fn(|text: tonic::Request<Text>| async {
            Ok::<_, tonic::Status>(tonic::Response::new(text.into_inner()))
        });
        let mut grpc = Grpc::new(ProstCodec::<Text, Text>::default());
        Ok::<Response<Body>, Infallible>(grpc.unary(echo, request).await)
    });
    let incoming = TcpListenerStream::new(listener);
    let server = tonic::transport::Server::builder().tcp_nodelay(true);
    server
        .serve_with_incoming(echo, incoming)
        .await
        .expect("it serves");
}
