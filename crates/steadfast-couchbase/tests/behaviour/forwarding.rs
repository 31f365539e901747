//! The fast-forward map, and vbuckets without a node (RFC 0005; D23, D43).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use steadfast_couchbase::ClusterOptions;
use steadfast_couchbase::options::VbucketRetry;
use steadfast_wire::{Frame, Opcode, Status};
use tokio::net::TcpListener;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, bucket_config, moving};

/// Two nodes. All vbuckets move from the first to the second, and both refuse all
/// reads. Every response has a newer config with the same maps, until the move is
/// over.
struct Move {
    old: Scripted,
    _new: Scripted,
    script: Arc<Script>,
}

struct Script {
    ports: [u16; 2],
    rev: AtomicI64,
    /// Reads that the old node got, and those that the new one got.
    reads: [AtomicU32; 2],
    /// The revision from which on the vbuckets are on the new node.
    moved_at: AtomicI64,
}

impl Script {
    fn config(&self, rev: i64) -> Vec<u8> {
        if rev < self.moved_at.load(Ordering::Relaxed) {
            return moving(rev, &self.ports, 0, 1);
        }
        let config = bucket_config(1, rev, &self.ports, 1);
        config.to_string().into_bytes()
    }

    fn reply(&self, node: usize, frame: &Frame) -> Reply {
        let newer = || self.rev.fetch_add(1, Ordering::Relaxed) + 1;
        match frame.opcode() {
            Opcode::GetClusterConfig => Reply::Answer(Status::Success, self.config(newer())),
            Opcode::Get => {
                self.reads[node].fetch_add(1, Ordering::Relaxed);
                let rev = newer();
                match node == 1 && rev >= self.moved_at.load(Ordering::Relaxed) {
                    true => Reply::Answer(Status::Success, b"1".to_vec()),
                    false => Reply::Answer(Status::NotMyVbucket, self.config(rev)),
                }
            }
            _ => Reply::Usual,
        }
    }

    fn reads(&self) -> [u32; 2] {
        [0, 1].map(|node| self.reads[node].load(Ordering::Relaxed))
    }
}

impl Move {
    async fn start() -> Self {
        let listen = || TcpListener::bind("127.0.0.1:0");
        let (old, new) = (listen().await.unwrap(), listen().await.unwrap());
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let script = Arc::new(Script {
            ports: [port(&old), port(&new)],
            rev: AtomicI64::new(1),
            reads: Default::default(),
            moved_at: AtomicI64::new(i64::MAX),
        });
        let (first, second) = (script.clone(), script.clone());
        Self {
            old: Scripted::on(old, move |frame| first.reply(0, frame)),
            _new: Scripted::on(new, move |frame| second.reply(1, frame)),
            script,
        }
    }
}

/// Waits at the forward node without a second look at the old one, whatever newer
/// revisions say the same. The end of the move wakes all.
#[tokio::test]
async fn a_newer_config_with_the_same_maps_does_not_lead_back_and_wakes_no_request() {
    const READS: u32 = 500;
    let nodes = Move::start().await;
    // Longer than the test: only a wake leads to another attempt.
    let options = ClusterOptions::new().vbucket_retry(VbucketRetry::Fixed(LONG * 10));
    let cluster = nodes.old.client(options).await;
    let bucket = cluster.bucket(BUCKET);
    bucket.wait_until_ready(LONG).await.unwrap();
    let documents = bucket.default_collection();
    let mut reads = Vec::new();
    // Each of the later ones brings newer revisions to all that wait.
    for (first, all) in [(0, READS), (READS, READS + 20)] {
        reads.extend((first..all).map(|number| spawn_get(&documents, &format!("k{number}"))));
        until("each was refused by both", || {
            nodes.script.reads() >= [all, all]
        })
        .await;
        assert_eq!(nodes.script.reads(), [all, all]);
    }
    let all = READS + 20;
    // The responses to these come after the refusals, on the same connections.
    assert!(cluster.ping().await.endpoints.len() >= 2);
    let next = nodes.script.rev.load(Ordering::Relaxed) + 1;
    nodes.script.moved_at.store(next, Ordering::Relaxed);
    documents.get("last").timeout(LONG).await.unwrap();
    for read in reads {
        read.await.unwrap().unwrap();
    }
    let [old, new] = nodes.script.reads();
    assert!(old <= all + 1, "{old} reads went to the old node");
    assert!(new <= 2 * all + 2, "{new} reads went to the new node");
}

/// A node whose configs are these, one after the other; the last one stays.
async fn one_node(configs: fn(i64, &[u16]) -> Vec<u8>) -> (Scripted, Arc<AtomicI64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let ports = [listener.local_addr().unwrap().port()];
    let asked = Arc::new(AtomicI64::new(0));
    let count = asked.clone();
    let server = Scripted::on(listener, move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            let rev = count.fetch_add(1, Ordering::Relaxed) + 1;
            Reply::Answer(Status::Success, configs(rev, &ports))
        }
        Opcode::Get => Reply::Answer(Status::Success, b"1".to_vec()),
        _ => Reply::Usual,
    });
    (server, asked)
}

#[tokio::test]
async fn an_operation_on_a_vbucket_without_a_node_requests_a_config() {
    let (server, asked) = one_node(|rev, ports| {
        let active = if rev < 8 { -1 } else { 0 };
        bucket_config(1, rev, ports, active)
            .to_string()
            .into_bytes()
    })
    .await;
    // Nothing is pushed and nothing is polled.
    let options = ClusterOptions::new().config_poll_interval(LONG * 10);
    let cluster = server.client(options).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.get("k").timeout(LONG).await.unwrap();
    assert!(asked.load(Ordering::Relaxed) >= 8);
}

#[tokio::test]
async fn a_vbucket_without_a_node_is_used_at_its_forward_node() {
    let (server, _) = one_node(|rev, ports| moving(rev, ports, -1, 0)).await;
    let (_cluster, documents) = server.opened().await;
    let outcome = documents.get("k").timeout(ms(2000)).await;
    assert_eq!(outcome.unwrap().content::<i32>().unwrap(), 1);
}
