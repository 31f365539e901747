//! A TLS connection whose socket fails in the middle of a write.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::SystemTime;

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use steadfast_os::{Connecting, Platform, ResetSwitch, SimulatedListener, SimulatedSocket};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// A socket that accepts a number of bytes more, and then fails.
struct Failing {
    socket: DuplexStream,
    accepts: Arc<AtomicUsize>,
}

impl AsyncWrite for Failing {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let accepts = self.accepts.load(Ordering::Relaxed);
        if accepts == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let accepted = &bytes[..bytes.len().min(accepts)];
        let written = Pin::new(&mut self.socket).poll_write(cx, accepted);
        if let Poll::Ready(Ok(written)) = written {
            self.accepts.fetch_sub(written, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl AsyncRead for Failing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, bytes)
    }
}

impl SimulatedSocket for Failing {
    fn local_addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], 1).into()
    }

    fn reset_switch(&self) -> Arc<dyn ResetSwitch> {
        unreachable!("the client resets no connection")
    }
}

/// Opens one connection, with this socket.
struct OneSocket(Mutex<Option<Box<dyn SimulatedSocket>>>);

impl Platform for OneSocket {
    fn connect(&self, _: SocketAddr) -> Connecting {
        let socket = self.0.lock().unwrap().take().unwrap();
        Box::pin(std::future::ready(Ok(socket)))
    }

    fn listen(&self, _: SocketAddr) -> io::Result<Box<dyn SimulatedListener>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

/// Connects by TLS. The peer reads nothing after the handshake.
async fn connect(socket: Failing, peer: DuplexStream) -> Io {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let signed = rcgen::generate_simple_self_signed(["peer".to_owned()]).unwrap();
    let certificate = signed.cert.der().clone();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = {
        let platform = OneSocket(Mutex::new(Some(Box::new(socket))));
        let _entered = steadfast_os::enter(Arc::new(platform));
        steadfast_os::net::TcpStream::connect("127.0.0.1", 1)
            .await
            .unwrap()
    };
    let name = ServerName::try_from("peer").unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let (ours, theirs) = tokio::join!(connector.connect(name, stream), acceptor.accept(peer));
    std::mem::forget(theirs.unwrap());
    Io::Right(Box::new(ours.unwrap()))
}

#[tokio::test]
async fn a_write_that_fails_after_a_part_of_it_left_counts_as_sent() {
    let (ours, theirs) = tokio::io::duplex(HUGE);
    let accepts = Arc::new(AtomicUsize::new(usize::MAX));
    let socket = Failing {
        socket: ours,
        accepts: accepts.clone(),
    };
    let io = connect(socket, theirs).await;
    // The first operation leaves, and a part of the second. Then the socket fails, in the
    // same write.
    accepts.store(100_000, Ordering::Relaxed);
    let connection = Connection::new(
        ConnectionEnds::default(),
        FeatureSet::default(),
        None,
        ConnectionLimits::default(),
    );
    let first = submit(&connection, 0, 100, None).unwrap();
    let second = submit(&connection, 1, 1 << 20, None).unwrap();
    let (heard, _orphans) = mpsc::unbounded_channel();
    let task = Task::new(io, connection.clone(), BytesMut::new(), Heard(heard));
    soon(task.run()).await;
    assert_eq!(accepts.load(Ordering::Relaxed), 0, "a part left");
    for ticket in [first, second] {
        let ended = soon(ticket).await.unwrap_err();
        assert_eq!(ended, ended_by(NoResponseCause::Closed, true));
    }
}
