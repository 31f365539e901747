use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_wire::{Datatype, FrameBuilder, Opcode, Status, extras};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::net::TcpStream;

use super::super::unsent::{MAX_UNSENT_TOGETHER, MIN_UNSENT};
use super::*;
use crate::{BucketSettings, Service, TestCluster};

/// A client without collections.
struct Client<S = TcpStream> {
    stream: S,
    received: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    async fn log_in(&mut self) {
        let login = FrameBuilder::request(Opcode::SaslAuth).key(&b"PLAIN"[..]);
        let login = login.value(&b"\0app\0secret"[..]);
        self.send(|out| login.encode(out).unwrap()).await;
        assert!(self.receive().await.is_success());
        let select = FrameBuilder::request(Opcode::SelectBucket).key(&b"b"[..]);
        self.send(|out| select.encode(out).unwrap()).await;
        assert!(self.receive().await.is_success());
    }

    async fn send(&mut self, frame: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        frame(&mut out);
        self.stream.write_all(&out).await.unwrap();
    }

    async fn receive(&mut self) -> Frame {
        loop {
            match FrameDecoder::from_server().decode(&mut self.received) {
                Ok(Decoded::Frame(frame)) => return frame,
                Ok(Decoded::NeedMore(_)) => {}
                Err(error) => panic!("{error}"),
            }
            assert_ne!(self.stream.read_buf(&mut self.received).await.unwrap(), 0);
        }
    }
}

async fn one_vbucket() -> TestCluster {
    let bucket = BucketSettings::new("b").vbuckets(1);
    let cluster = TestCluster::builder().bucket(bucket).user("app", "secret");
    cluster.start().await.unwrap()
}

async fn connected(cluster: &TestCluster) -> Client {
    let address = cluster.connection_string();
    let address = address.strip_prefix("couchbase://").unwrap();
    let address = address.split(['/', '?', ',', '=']).next().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let received = BytesMut::new();
    let mut client = Client { stream, received };
    client.log_in().await;
    client
}

#[tokio::test]
async fn requests_that_waited_for_other_connections_are_executed_when_there_is_room_again() {
    const REQUESTS: usize = 400;
    let cluster = one_vbucket().await;
    let mut client = connected(&cluster).await;
    let (flags, expiry) = (0, 0);
    let large = vec![b'x'; 100_000];
    let set = FrameBuilder::request(Opcode::Set)
        .datatype(Datatype::RAW)
        .extras(extras::StoreExtras { flags, expiry })
        .key(&b"k"[..])
        .value(&large[..]);
    client.send(|out| set.encode(out).unwrap()).await;
    assert!(client.receive().await.is_success());

    // As if other connections had as many bytes unsent as all may have together.
    let unsent = &cluster.shared().unsent;
    unsent.fetch_add(MAX_UNSENT_TOGETHER, Ordering::Relaxed);
    let get = FrameBuilder::request(Opcode::Get).key(&b"k"[..]);
    let gets = |out: &mut BytesMut| (0..REQUESTS).for_each(|_| get.encode(out).unwrap());
    client.send(gets).await;
    while unsent.load(Ordering::Relaxed) < MAX_UNSENT_TOGETHER + MIN_UNSENT {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    unsent.fetch_sub(MAX_UNSENT_TOGETHER, Ordering::Relaxed);

    let all = async {
        for _ in 0..REQUESTS {
            assert_eq!(client.receive().await.value().len(), large.len());
        }
    };
    let received = tokio::time::timeout(Duration::from_secs(30), all).await;
    received.expect("the connection goes on without another request");
}

/// A stream that takes all bytes and, like TLS, sends them when it is flushed.
struct HoldsBack {
    stream: DuplexStream,
    held: BytesMut,
}

impl AsyncRead for HoldsBack {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for HoldsBack {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.held.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, held } = &mut *self;
        while !held.is_empty() {
            let sent = ready!(Pin::new(&mut *stream).poll_write(cx, held))?;
            held.advance(sent);
        }
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn responses_that_a_full_tls_stream_holds_back_are_sent_without_another_request() {
    let cluster = one_vbucket().await;
    let shared = cluster.shared();
    let plain = connected(&cluster).await.stream;
    let peer = plain.peer_addr().unwrap();
    let connection = AcceptedConnection {
        service: Service::KeyValue,
        tls: true,
        peer,
        id: shared.next_connection(),
        node: shared.nodes()[0].clone(),
        shared: shared.clone(),
    };
    // The socket takes less than a header.
    let (ours, stream) = tokio::io::duplex(16);
    let held = BytesMut::new();
    let reset = steadfast_os::net::TcpStream::from(plain).reset_on_close();
    let serving = serve(HoldsBack { stream, held }, reset, connection);
    let serving = tokio::spawn(serving);
    let mut client = Client {
        stream: ours,
        received: BytesMut::new(),
    };
    let dialogue = async {
        client.log_in().await;
        let get = FrameBuilder::request(Opcode::Get).key(&b"missing"[..]);
        client.send(|out| get.encode(out).unwrap()).await;
        assert_eq!(client.receive().await.status(), Status::KeyNotFound);
    };
    let dialogue = tokio::time::timeout(Duration::from_secs(30), dialogue).await;
    dialogue.expect("the node holds responses back");
    drop(client);
    serving.await.unwrap();
}
