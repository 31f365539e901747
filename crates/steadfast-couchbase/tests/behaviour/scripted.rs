//! A scripted server, which sends what a test wants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::BytesMut;
use serde_json::json;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection};
use steadfast_wire::{Datatype, Decoded, Frame, FrameBuilder, FrameDecoder, Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::fixture::*;

/// What the script says to a request.
pub(crate) enum Reply {
    /// What a server of one node would say.
    Usual,
    /// This status and this value.
    Answer(Status, Vec<u8>),
    /// These bytes.
    Raw(Vec<u8>),
    /// The end of the connection.
    Close,
    /// Success, then no byte is read any more until this says to close.
    Stall(Arc<Notify>),
    /// Nothing, now and later, although all is read.
    Silence,
}

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    /// How many connections were made.
    pub(crate) dials: Arc<AtomicU32>,
    /// How many of them are open.
    pub(crate) open: Arc<AtomicU32>,
    accepting: JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start(script: impl Fn(&Frame) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, script)
    }

    pub(crate) fn on(
        listener: TcpListener,
        script: impl Fn(&Frame) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let script = Arc::new(script);
        Self::accept(listener, address, move |socket| {
            let script = script.clone();
            async move { serve(socket, address, &*script).await }
        })
    }

    /// Does this with every connection.
    pub(crate) async fn with_sockets<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::accept(listener, address, serve)
    }

    fn accept<F: Future<Output = ()> + Send + 'static>(
        listener: TcpListener,
        address: SocketAddr,
        serve: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self {
        let (dials, open) = (Arc::<AtomicU32>::default(), Arc::<AtomicU32>::default());
        let (dialled, opened) = (dials.clone(), open.clone());
        let accepting = tokio::spawn(async move {
            let mut serving = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                dialled.fetch_add(1, Ordering::Relaxed);
                opened.fetch_add(1, Ordering::Relaxed);
                let (serving_one, opened) = (serve(socket), opened.clone());
                serving.spawn(async move {
                    serving_one.await;
                    opened.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Self {
            address,
            dials,
            open,
            accepting,
        }
    }

    pub(crate) async fn client(&self, options: ClusterOptions) -> Cluster {
        let string = format!("couchbase://{}", self.address);
        let options = options.allow_secrets_without_tls(true);
        connect(&string, app(), options).await
    }

    /// A client, and the default collection of its bucket.
    pub(crate) async fn opened(&self) -> (Cluster, Collection) {
        let cluster = self.client(ClusterOptions::new()).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        (cluster, documents)
    }

    pub(crate) fn dials(&self) -> u32 {
        self.dials.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut socket: TcpStream,
    address: SocketAddr,
    script: &(dyn Fn(&Frame) -> Reply + Send + Sync),
) {
    let mut received = BytesMut::new();
    loop {
        match FrameDecoder::from_client().decode(&mut received) {
            Ok(Decoded::Frame(frame)) => {
                let reply = match script(&frame) {
                    Reply::Usual => usual(&frame, address),
                    reply => reply,
                };
                let bytes = match reply {
                    Reply::Answer(status, value) => frame_of(&frame, status, &value),
                    Reply::Raw(bytes) => bytes,
                    Reply::Usual => continue,
                    Reply::Close => return,
                    Reply::Silence => {
                        while !matches!(socket.read_buf(&mut received).await, Ok(0) | Err(_)) {
                            received.clear();
                        }
                        return;
                    }
                    Reply::Stall(until) => {
                        let answer = frame_of(&frame, Status::Success, b"1");
                        let _ = socket.write_all(&answer).await;
                        return until.notified().await;
                    }
                };
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Ok(Decoded::NeedMore(_)) => match socket.read_buf(&mut received).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
            Err(_) => return,
        }
    }
}

/// What a server of one node says that has everything.
fn usual(frame: &Frame, address: SocketAddr) -> Reply {
    let (status, value) = match frame.opcode() {
        Opcode::Hello => (Status::Success, frame.value().to_vec()),
        Opcode::GetErrorMap => (Status::NotSupported, Vec::new()),
        Opcode::SaslListMechs => (Status::Success, b"PLAIN".to_vec()),
        Opcode::SaslAuth if frame.key() == b"PLAIN" => (Status::Success, Vec::new()),
        Opcode::SaslAuth => (Status::AuthError, Vec::new()),
        Opcode::GetClusterConfig => {
            let config = config(1, 1, &[address.port()], 0);
            (Status::Success, config.into_bytes())
        }
        _ => (Status::Success, Vec::new()),
    };
    Reply::Answer(status, value)
}

/// The bytes of an answer to a frame.
pub(crate) fn frame_of(frame: &Frame, status: Status, value: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    let extras: &[u8] = match (frame.opcode(), status) {
        (Opcode::Get, Status::Success) => &[0; 4],
        _ => &[],
    };
    FrameBuilder::response(frame.opcode(), status)
        .opaque(frame.opaque())
        .datatype(Datatype::RAW)
        .extras(extras)
        .value(value)
        .encode(&mut out)
        .unwrap();
    out.to_vec()
}

/// A config of the bucket with all vbuckets on one of the nodes.
pub(crate) fn config(epoch: i64, rev: i64, ports: &[u16], active: usize) -> String {
    bucket_config(epoch, rev, ports, active as i32).to_string()
}

/// A config of the bucket that moves all vbuckets from one place to another; -1 is
/// no node.
pub(crate) fn moving(rev: i64, ports: &[u16], from: i32, to: i32) -> Vec<u8> {
    let mut config = bucket_config(1, rev, ports, from);
    let map: Vec<_> = (0..VBUCKETS).map(|_| [to]).collect();
    config["vBucketServerMap"]["vBucketMapForward"] = json!(map);
    config.to_string().into_bytes()
}

pub(crate) fn bucket_config(epoch: i64, rev: i64, ports: &[u16], active: i32) -> serde_json::Value {
    let nodes: Vec<_> = ports
        .iter()
        .map(|port| json!({"hostname": "127.0.0.1:8091", "ports": {"direct": port}}))
        .collect();
    let extended: Vec<_> = ports
        .iter()
        .map(|port| json!({"hostname": "127.0.0.1", "services": {"kv": port, "mgmt": 8091}}))
        .collect();
    let servers: Vec<_> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let map: Vec<_> = (0..VBUCKETS).map(|_| [active]).collect();
    json!({
        "rev": rev,
        "revEpoch": epoch,
        "name": BUCKET,
        "uuid": "5ca1ab1e",
        "nodeLocator": "vbucket",
        "bucketCapabilities": ["collections"],
        "nodes": nodes,
        "nodesExt": extended,
        "vBucketServerMap": {
            "hashAlgorithm": "CRC",
            "numReplicas": 0,
            "serverList": servers,
            "vBucketMap": map,
        },
    })
}
