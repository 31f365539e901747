//! A scripted tonic server.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use prost::Message;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tonic::body::Body;
use tonic::server::Grpc;
use tonic::{Code, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// The message of requests and responses.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

/// The action of the server for one call. After the script it succeeds.
#[derive(Clone, Debug)]
pub(crate) enum ServerAction {
    Fail {
        code: Code,
        pushback: Option<String>,
        details: Vec<u8>,
    },
    /// Sends the head, and then fails.
    InTrailers(Code),
    /// Carries out the call, responds, and then says that it is throttled.
    ThrottledAfterMessage,
    /// Carries out the call. The client cannot read the response.
    Unreadable(Unreadable),
    /// Reads the call and closes the connection.
    Cut,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Unreadable {
    /// The message is longer than a client accepts.
    TooLong,
    /// The message has an encoding that the client does not have.
    Encoded,
}

impl ServerAction {
    pub(crate) fn status(code: Code) -> Self {
        let (pushback, details) = (None, Vec::new());
        ServerAction::Fail {
            code,
            pushback,
            details,
        }
    }

    pub(crate) fn pushback(mut self, value: &str) -> Self {
        if let ServerAction::Fail { pushback, .. } = &mut self {
            *pushback = Some(value.to_owned());
        }
        self
    }

    pub(crate) fn details(mut self, bytes: &[u8]) -> Self {
        if let ServerAction::Fail { details, .. } = &mut self {
            *details = bytes.to_vec();
        }
        self
    }

    /// Adds a `google.rpc.RetryInfo` to the details.
    pub(crate) fn retry_info(self, seconds: i64, nanos: i32) -> Self {
        let field =
            |tag: u8, bytes: &[u8]| [&[tag << 3 | 2, bytes.len() as u8][..], bytes].concat();
        let mut duration = vec![1 << 3];
        prost::encoding::encode_varint(seconds as u64, &mut duration);
        duration.push(2 << 3);
        prost::encoding::encode_varint(nanos as u64, &mut duration);
        let any = [
            field(1, b"type.googleapis.com/google.rpc.RetryInfo"),
            field(2, &field(1, &duration)),
        ];
        let details = field(3, &any.concat());
        self.details(&details)
    }
}

pub(crate) struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    script: Mutex<VecDeque<ServerAction>>,
    /// The timeout of each call.
    calls: Mutex<Vec<Option<String>>>,
    connections: Mutex<Vec<Arc<TcpStream>>>,
}

impl Server {
    pub(crate) async fn start(script: impl IntoIterator<Item = ServerAction>) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    pub(crate) fn listen(
        listener: TcpListener,
        script: impl IntoIterator<Item = ServerAction>,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen {
            script: Mutex::new(script.into_iter().collect()),
            ..Seen::default()
        });
        let service = {
            let seen = Arc::clone(&seen);
            service_fn(move |request| serve(Arc::clone(&seen), request))
        };
        let incoming = Incoming(listener, Arc::clone(&seen));
        tokio::spawn(tonic::transport::Server::builder().serve_with_incoming(service, incoming));
        Self { address, seen }
    }

    pub(crate) fn uri(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn calls(&self) -> usize {
        self.seen.calls.lock().unwrap().len()
    }

    pub(crate) fn timeouts(&self) -> Vec<Option<String>> {
        self.seen.calls.lock().unwrap().clone()
    }
}

/// An address without a listener, until the socket listens.
pub(crate) fn closed_port() -> (TcpSocket, String) {
    let held = TcpSocket::new_v4().unwrap();
    held.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let uri = format!("http://{}", held.local_addr().unwrap());
    (held, uri)
}

async fn serve(seen: Arc<Seen>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let timeout = request.headers().get("grpc-timeout");
    let timeout = timeout.map(|timeout| timeout.to_str().unwrap().to_owned());
    seen.calls.lock().unwrap().push(timeout);
    let act = seen.script.lock().unwrap().pop_front();
    match &act {
        Some(ServerAction::InTrailers(code)) => return Ok(in_trailers(*code)),
        Some(ServerAction::ThrottledAfterMessage) => return Ok(throttled_after_message()),
        Some(ServerAction::Unreadable(why)) => return Ok(unreadable(*why)),
        Some(ServerAction::Cut) => {
            for connection in seen.connections.lock().unwrap().drain(..) {
                socket2::SockRef::from(&*connection)
                    .shutdown(std::net::Shutdown::Both)
                    .unwrap();
            }
            std::future::pending::<()>().await;
        }
        Some(ServerAction::Fail { .. }) | None => {}
    }
    let answer = service_fn(move |request: tonic::Request<Text>| {
        let answer = match &act {
            Some(ServerAction::Fail {
                code,
                pushback,
                details,
            }) => Err(fail(*code, pushback.as_deref(), details)),
            Some(
                ServerAction::InTrailers(_)
                | ServerAction::ThrottledAfterMessage
                | ServerAction::Unreadable(_)
                | ServerAction::Cut,
            )
            | None => {
                let text = format!("hello {}", request.into_inner().text);
                Ok(tonic::Response::new(Text { text }))
            }
        };
        async move { answer }
    });
    let codec = ProstCodec::<Text, Text>::default();
    Ok(Grpc::new(codec).unary(answer, request).await)
}

fn fail(code: Code, pushback: Option<&str>, details: &[u8]) -> Status {
    let details = Bytes::copy_from_slice(details);
    let mut status = Status::with_details(code, "as told", details);
    if let Some(pushback) = pushback {
        let metadata = status.metadata_mut();
        metadata.insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    }
    status
}

fn in_trailers(code: Code) -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", i32::from(code).into());
    respond([Frame::trailers(trailers)])
}

fn throttled_after_message() -> Response<Body> {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", i32::from(Code::ResourceExhausted).into());
    trailers.insert("grpc-retry-pushback-ms", 1.into());
    let empty = Frame::data(Bytes::from_static(&[0; 5]));
    respond([empty, Frame::trailers(trailers)])
}

fn unreadable(why: Unreadable) -> Response<Body> {
    // The head of a message: not compressed, and 2 GiB long.
    let mut response = respond([Frame::data(Bytes::from_static(&[0, 128, 0, 0, 0]))]);
    if let Unreadable::Encoded = why {
        let headers = response.headers_mut();
        headers.insert("grpc-encoding", "br".parse().unwrap());
    }
    response
}

fn respond<const N: usize>(frames: [Frame<Bytes>; N]) -> Response<Body> {
    let body = http_body_util::StreamBody::new(Frames(frames.into()));
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(Body::new(body)).unwrap()
}

struct Frames(VecDeque<Frame<Bytes>>);

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop_front().map(Ok))
    }
}

/// Incoming connections, kept so that the server can cut them.
struct Incoming(TcpListener, Arc<Seen>);

impl futures_core::Stream for Incoming {
    type Item = std::io::Result<TcpStream>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let accepted = std::task::ready!(self.0.poll_accept(cx));
        Poll::Ready(Some(accepted.map(|(stream, _)| {
            let stream = stream.into_std().unwrap();
            let copy = TcpStream::from_std(stream.try_clone().unwrap()).unwrap();
            self.1.connections.lock().unwrap().push(Arc::new(copy));
            TcpStream::from_std(stream).unwrap()
        })))
    }
}
