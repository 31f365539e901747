//! Connections to nodes, and requests that know whether one took them up.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::{Method, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use steadfast_os::net::TcpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tower_service::Service;

use crate::hedge::dial_hedged;

/// The client with its pool of connections.
pub(crate) type HttpClient = Client<Connector, RequestBody>;

/// The most bytes that the head of a response may have. The services send a few
/// hundred bytes of headers.
const MAX_HEAD: usize = 64 * 1024;

/// Makes a client that keeps a number of idle connections to each node, for some time.
pub(crate) fn client(connector: Connector, idle: Duration, most: Option<usize>) -> HttpClient {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .pool_max_idle_per_host(most.unwrap_or(usize::MAX))
        .http1_max_buf_size(MAX_HEAD)
        // Only the orchestrator decides what is sent again.
        .retry_canceled_requests(false)
        .build(connector)
}

/// A request to a service, without the node and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    /// Path and query, both percent-encoded.
    pub(crate) path: String,
    /// The content type, and a header of the service if it has one.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl HttpRequest {
    /// Makes a request without a body.
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    /// Makes a `POST` request with a JSON body.
    pub(crate) fn post_json(path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, path).content("application/json", body)
    }

    /// Sets the body, in place of an earlier one.
    pub(crate) fn content(mut self, kind: &str, body: impl Into<Bytes>) -> Self {
        self.headers.retain(|(name, _)| *name != "content-type");
        self.headers.push(("content-type", kind.to_owned()));
        self.body = body.into();
        self
    }
}

/// Says whether a connection has taken up the request.
#[derive(Clone, Default)]
pub(super) struct SentMark(Arc<AtomicBool>);

impl SentMark {
    /// False: no byte of the request has left. True: some may have.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A request body that sets a mark when it is first looked at.
///
/// A connection asks a body for its size before it encodes the head of the
/// request; the pool before it only hands the request on. A request whose body was
/// never looked at was therefore not written by any connection. If another layer
/// ever asks earlier, the mark errs on the safe side.
pub(crate) struct RequestBody {
    mark: SentMark,
    body: Option<Bytes>,
}

impl RequestBody {
    pub(super) fn new(body: Bytes) -> (Self, SentMark) {
        let mark = SentMark::default();
        let body = (!body.is_empty()).then_some(body);
        let this = Self {
            mark: mark.clone(),
            body,
        };
        (this, mark)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.mark.set();
        Poll::Ready(self.body.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.mark.set();
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.mark.set();
        let bytes = self.body.as_ref().map_or(0, Bytes::len);
        SizeHint::with_exact(bytes as u64)
    }
}

/// Opens connections, with TLS where the address says `https`. Clones share the
/// TLS configuration.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Arc<ArcSwapOption<ClientConfig>>,
    timeout: Duration,
}

/// A connection, encrypted or not.
pub(crate) struct Socket(Pin<Box<dyn AsyncIo>>);

trait AsyncIo: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> AsyncIo for T {}

impl Connector {
    pub(crate) fn new(tls: Option<Arc<ClientConfig>>, timeout: Duration) -> Self {
        Self {
            tls: Arc::new(ArcSwapOption::new(tls)),
            timeout,
        }
    }

    /// Uses this configuration for new connections.
    pub(crate) fn set_tls(&self, tls: Option<Arc<ClientConfig>>) {
        self.tls.store(tls);
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Socket>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Cancel-safe: dropping the future closes the connection.
    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = (uri.scheme_str() == Some("https")).then(|| self.tls.load_full());
        let timeout = self.timeout;
        Box::pin(async move {
            let secure = |stream| secure(&uri, stream, tls.clone());
            match dial_hedged(timeout, || connect(&uri), secure).await {
                Some(connected) => connected.map(TokioIo::new),
                None => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection after {timeout:?}"),
                )),
            }
        })
    }
}

/// Cancel-safe: dropping the future closes the connection.
async fn connect(uri: &Uri) -> io::Result<TcpStream> {
    let Some(port) = uri.port_u16() else {
        return Err(without_address());
    };
    let stream = TcpStream::connect(host(uri)?, port).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn host(uri: &Uri) -> io::Result<&str> {
    let host = uri.host().ok_or_else(without_address)?;
    Ok(host.trim_start_matches('[').trim_end_matches(']'))
}

fn without_address() -> io::Error {
    let problem = "the address has no host or no port";
    io::Error::new(io::ErrorKind::InvalidInput, problem)
}

/// Cancel-safe: dropping the future closes the connection.
async fn secure(
    uri: &Uri,
    stream: TcpStream,
    tls: Option<Option<Arc<ClientConfig>>>,
) -> io::Result<Socket> {
    let Some(config) = tls else {
        return Ok(Socket(Box::pin(stream)));
    };
    let config = config.ok_or_else(|| {
        let problem = "the address asks for TLS, and the client has no TLS configuration";
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })?;
    let name = ServerName::try_from(host(uri)?.to_owned())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(Socket(Box::pin(stream)))
}

impl Connection for Socket {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_body_replaces_the_first_with_its_content_type() {
        let json = HttpRequest::post_json("/x", "{}");
        let form = json.content("application/x-www-form-urlencoded", "a=1");
        let kind = "application/x-www-form-urlencoded".to_owned();
        assert_eq!(form.headers, [("content-type", kind)]);
        assert_eq!(form.body, "a=1");
    }
}
