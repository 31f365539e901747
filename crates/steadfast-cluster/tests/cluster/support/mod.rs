//! A client for tests: it speaks frames, hides nothing and retries nothing.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses a part of this"
)]

pub mod http;
pub mod memory;
pub mod statements;

use std::time::Duration;

use bytes::{Buf, BytesMut};
use steadfast_cluster::{BucketSettings, NodeId, Service, TestCluster, TestClusterBuilder};
use steadfast_wire::extras::{CounterExtras, ExpiryExtras, LockTime, StoreExtras};
use steadfast_wire::{
    CollectionId, Decoded, DocumentKey, Encode, Feature, Frame, FrameBuilder, FrameDecoder,
    HEADER_LEN, Header, Opcode, Status, vbucket,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const VBUCKETS: u16 = 64;
pub const BUCKET: &str = "b";

/// What most clients ask for, but for snappy and tracing, which make answers harder to read.
pub const USUAL: &[Feature] = &[
    Feature::MutationSeqno,
    Feature::Xattr,
    Feature::Xerror,
    Feature::SelectBucket,
    Feature::Json,
    Feature::AltRequest,
    Feature::SyncReplication,
    Feature::Collections,
    Feature::PreserveTtl,
    Feature::UnorderedExecution,
];

pub async fn cluster(nodes: usize, replicas: usize) -> TestCluster {
    builder(nodes, replicas).start().await.unwrap()
}

/// A cluster of one node, and a client that is ready.
pub async fn one_node() -> (TestCluster, Client) {
    let cluster = cluster(1, 0).await;
    let client = Client::for_key(&cluster, "k").await;
    (cluster, client)
}

pub fn builder(nodes: usize, replicas: usize) -> TestClusterBuilder {
    TestCluster::builder()
        .nodes(nodes)
        .bucket(
            BucketSettings::new(BUCKET)
                .replicas(replicas)
                .vbuckets(VBUCKETS),
        )
        .seed(4711)
}

/// The node that serves a key, and another one.
pub fn active_and_other(cluster: &TestCluster, key: &str) -> (NodeId, NodeId) {
    let active = cluster.active_node(BUCKET, key.as_bytes());
    let active = active.unwrap().unwrap();
    let other = cluster.nodes().into_iter().find(|node| *node != active);
    (active, other.unwrap())
}

/// A key that this node serves.
pub fn key_on(cluster: &TestCluster, node: NodeId) -> String {
    (0..)
        .map(|number| format!("k{number}"))
        .find(|key| cluster.active_node(BUCKET, key.as_bytes()).unwrap() == Some(node))
        .unwrap()
}

/// A connection to one node.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    inbound: BytesMut,
    next_opaque: u32,
    pub collections: bool,
    pub collection: u32,
}

impl Client {
    pub async fn connect(cluster: &TestCluster, node: NodeId) -> Self {
        let at = cluster
            .nodes()
            .iter()
            .position(|known| *known == node)
            .unwrap();
        Self::connect_to(&cluster.addresses(Service::KeyValue)[at]).await
    }

    pub async fn connect_to(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            inbound: BytesMut::new(),
            next_opaque: 1,
            collections: false,
            collection: 0,
        }
    }

    /// Connected, authenticated, and with the bucket selected.
    pub async fn ready(cluster: &TestCluster, node: NodeId, features: &[Feature]) -> Self {
        let mut client = Self::connect(cluster, node).await;
        assert_eq!(client.hello(features).await.len(), features.len());
        assert_eq!(
            client
                .authenticate(TestCluster::USER, TestCluster::PASSWORD)
                .await,
            Status::Success
        );
        assert_eq!(client.select(BUCKET).await, Status::Success);
        client
    }

    /// Ready, on the node that serves this key.
    pub async fn for_key(cluster: &TestCluster, key: &str) -> Self {
        let node = cluster
            .active_node(BUCKET, key.as_bytes())
            .unwrap()
            .unwrap();
        Self::ready(cluster, node, USUAL).await
    }

    pub async fn hello(&mut self, features: &[Feature]) -> Vec<Feature> {
        let codes: Vec<u8> = features
            .iter()
            .flat_map(|feature| feature.code().to_be_bytes())
            .collect();
        let answer = self
            .call(FrameBuilder::request(Opcode::Hello).value(codes))
            .await;
        let (granted, _) = answer.value().as_chunks::<2>();
        let granted: Vec<Feature> = granted
            .iter()
            .map(|code| Feature::from_code(u16::from_be_bytes(*code)))
            .collect();
        self.collections = granted.contains(&Feature::Collections);
        granted
    }

    pub async fn authenticate(&mut self, user: &str, password: &str) -> Status {
        let message = format!("\0{user}\0{password}");
        let request = FrameBuilder::request(Opcode::SaslAuth)
            .key("PLAIN")
            .value(message);
        self.call(request).await.status()
    }

    pub async fn select(&mut self, bucket: &str) -> Status {
        self.call(FrameBuilder::request(Opcode::SelectBucket).key(bucket))
            .await
            .status()
    }

    /// Sends a request and waits for its answer.
    pub async fn call<F: Encode, E: Encode, K: Encode, V: Encode>(
        &mut self,
        request: FrameBuilder<F, E, K, V>,
    ) -> Frame {
        let opaque = self.send(request).await;
        let answer = self
            .receive()
            .await
            .expect("the connection closed without an answer");
        assert_eq!(answer.opaque(), opaque);
        answer
    }

    /// Sends a request and returns the status of its answer.
    pub async fn status<F: Encode, E: Encode, K: Encode, V: Encode>(
        &mut self,
        request: FrameBuilder<F, E, K, V>,
    ) -> Status {
        self.call(request).await.status()
    }

    /// Sends a request and returns its opaque.
    pub async fn send<F: Encode, E: Encode, K: Encode, V: Encode>(
        &mut self,
        request: FrameBuilder<F, E, K, V>,
    ) -> u32 {
        let opaque = self.next_opaque;
        self.next_opaque += 1;
        let mut bytes = BytesMut::new();
        request.opaque(opaque).encode(&mut bytes).unwrap();
        self.send_bytes(&bytes).await;
        opaque
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends as much as the peer takes at once; says how much that was.
    pub async fn send_some(&mut self, bytes: &[u8]) -> usize {
        self.stream.write(bytes).await.unwrap()
    }

    /// Sends to a peer that may close at any time, and takes what it says meanwhile.
    pub async fn send_what_it_takes(&mut self, bytes: &[u8]) {
        let (mut reader, mut writer) = self.stream.split();
        let mut answers = tokio::io::sink();
        let writing = async {
            let _closed_early = writer.write_all(bytes).await;
            let _closed_already = writer.shutdown().await;
        };
        let (_, _closed) = tokio::join!(writing, tokio::io::copy(&mut reader, &mut answers));
    }

    /// The next frame, or nothing if the connection ended, in whatever way.
    pub async fn receive(&mut self) -> Option<Frame> {
        loop {
            let decoder = FrameDecoder::from_server();
            match decoder
                .decode(&mut self.inbound)
                .expect("the server sends frames")
            {
                Decoded::Frame(frame) => return Some(frame),
                Decoded::NeedMore(_) => {
                    if self.stream.read_buf(&mut self.inbound).await.unwrap_or(0) == 0 {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads more, unless a whole frame is there already.
    pub async fn fill(&mut self) {
        let whole = self
            .peek_header()
            .is_some_and(|header| self.inbound.len() >= HEADER_LEN + header.body_len as usize);
        if !whole {
            self.inbound.reserve(64 * 1024);
            let read = self.stream.read_buf(&mut self.inbound).await.unwrap();
            assert_ne!(read, 0, "the connection closed");
        }
    }

    /// The header of the next frame, as far as it is there.
    pub fn peek_header(&self) -> Option<Header> {
        self.inbound
            .first_chunk()
            .map(|bytes| Header::decode(bytes).unwrap())
    }

    /// Skips a number of bytes, if they are there.
    pub fn skip(&mut self, bytes: usize) -> bool {
        let there = self.inbound.len() >= bytes;
        if there {
            self.inbound.advance(bytes);
        }
        there
    }

    /// Whatever bytes come until the connection ends, and how it ended.
    pub async fn receive_to_end(&mut self) -> (Vec<u8>, std::io::Result<()>) {
        let mut bytes = self.inbound.to_vec();
        let result = self.stream.read_to_end(&mut bytes).await;
        (bytes, result.map(drop))
    }

    /// Exactly this number of bytes.
    pub async fn receive_bytes(&mut self, count: usize) -> Vec<u8> {
        while self.inbound.len() < count {
            assert_ne!(
                self.stream.read_buf(&mut self.inbound).await.unwrap(),
                0,
                "closed early"
            );
        }
        self.inbound.split_to(count).to_vec()
    }

    /// The opaque of the last request.
    pub fn last_opaque(&self) -> u32 {
        self.next_opaque - 1
    }

    /// Returns whether nothing comes for a while.
    pub async fn is_quiet(&mut self, time: Duration) -> bool {
        tokio::time::timeout(time, self.receive()).await.is_err()
    }

    /// A request about a document.
    pub fn on<'a>(&self, opcode: Opcode, key: &'a str) -> FrameBuilder<(), (), DocumentKey<'a>> {
        let id = key.as_bytes();
        let document = if self.collections {
            DocumentKey::new(CollectionId(self.collection), id)
        } else {
            DocumentKey::without_collection(id)
        };
        FrameBuilder::request(opcode)
            .vbucket(vbucket::of_key(id, VBUCKETS))
            .key(document)
    }

    pub async fn get(&mut self, key: &str) -> Frame {
        self.call(self.on(Opcode::Get, key)).await
    }

    /// A store of this value, with the flags 7 and without an expiry.
    pub fn storing<'a>(
        &self,
        opcode: Opcode,
        key: &'a str,
        value: &'a str,
    ) -> FrameBuilder<(), StoreExtras, DocumentKey<'a>, &'a str> {
        let (flags, expiry) = (7, 0);
        let request = self.on(opcode, key);
        request.extras(StoreExtras { flags, expiry }).value(value)
    }

    pub async fn store(&mut self, opcode: Opcode, key: &str, value: &str, cas: u64) -> Frame {
        self.call(self.storing(opcode, key, value).cas(cas)).await
    }

    pub async fn set(&mut self, key: &str, value: &str) -> Frame {
        self.store(Opcode::Set, key, value, 0).await
    }

    pub async fn set_with_expiry(&mut self, key: &str, value: &str, expiry: u32) -> Frame {
        let extras = StoreExtras { flags: 7, expiry };
        self.call(self.on(Opcode::Set, key).extras(extras).value(value))
            .await
    }

    pub async fn touch(&mut self, opcode: Opcode, key: &str, expiry: u32) -> Frame {
        self.call(self.on(opcode, key).extras(ExpiryExtras { expiry }))
            .await
    }

    pub async fn lock(&mut self, key: &str, seconds: u32) -> Frame {
        self.call(self.on(Opcode::GetLocked, key).extras(LockTime { seconds }))
            .await
    }

    pub async fn unlock(&mut self, key: &str, cas: u64) -> Frame {
        self.call(self.on(Opcode::UnlockKey, key).cas(cas)).await
    }

    pub async fn count(&mut self, opcode: Opcode, key: &str, counter: CounterExtras) -> Frame {
        self.call(self.on(opcode, key).extras(counter)).await
    }

    pub async fn remove(&mut self, key: &str, cas: u64) -> Frame {
        self.call(self.on(Opcode::Delete, key).cas(cas)).await
    }
}

/// Waits until a condition holds, for a while, without a fixed sleep.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}
