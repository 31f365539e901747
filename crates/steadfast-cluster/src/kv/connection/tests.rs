use std::time::Duration;

use steadfast_wire::{Datatype, FrameBuilder, Opcode, extras};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::{BucketSettings, TestCluster};

/// A client without collections.
struct Client {
    stream: TcpStream,
    received: BytesMut,
}

impl Client {
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

async fn connected(cluster: &TestCluster) -> Client {
    let address = cluster.connection_string();
    let address = address.strip_prefix("couchbase://").unwrap();
    let address = address.split(['/', '?', ',', '=']).next().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let received = BytesMut::new();
    let mut client = Client { stream, received };
    let login = FrameBuilder::request(Opcode::SaslAuth).key(&b"PLAIN"[..]);
    let login = login.value(&b"\0app\0secret"[..]);
    client.send(|out| login.encode(out).unwrap()).await;
    assert!(client.receive().await.is_success());
    let select = FrameBuilder::request(Opcode::SelectBucket).key(&b"b"[..]);
    client.send(|out| select.encode(out).unwrap()).await;
    assert!(client.receive().await.is_success());
    client
}

#[tokio::test]
async fn requests_that_waited_for_other_connections_are_executed_when_there_is_room_again() {
    const REQUESTS: usize = 400;
    let bucket = BucketSettings::new("b").vbuckets(1);
    let cluster = TestCluster::builder().bucket(bucket).user("app", "secret");
    let cluster = cluster.start().await.unwrap();
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
