//! Connections to nodes, with TLS where the address says `https`.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hyper::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Opens connections. Clones share the TLS configuration.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Arc<ArcSwapOption<ClientConfig>>,
    timeout: Duration,
}

/// A connection, encrypted or not.
pub(crate) struct Socket(Pin<Box<dyn Io>>);

trait Io: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Io for T {}

impl Connector {
    pub(super) fn new(tls: Option<Arc<ClientConfig>>, timeout: Duration) -> Self {
        Self {
            tls: Arc::new(ArcSwapOption::new(tls)),
            timeout,
        }
    }

    /// Uses this configuration for the connections to come.
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

    /// Dropping the future closes what was opened.
    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = (uri.scheme_str() == Some("https")).then(|| self.tls.load_full());
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connect(&uri, tls)).await {
                Ok(connected) => connected.map(TokioIo::new),
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection after {timeout:?}"),
                )),
            }
        })
    }
}

async fn connect(uri: &Uri, tls: Option<Option<Arc<ClientConfig>>>) -> io::Result<Socket> {
    let (Some(host), Some(port)) = (uri.host(), uri.port_u16()) else {
        let problem = "an address without a host or a port";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(config) = tls else {
        return Ok(Socket(Box::pin(stream)));
    };
    let config = config.ok_or_else(|| {
        let problem = "TLS is asked for, and there is no configuration for it";
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    })?;
    let name = ServerName::try_from(host.to_owned())
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
