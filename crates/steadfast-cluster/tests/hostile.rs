//! Hostile and broken peers: others do not suffer, and the log reports it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and may say what it saw"
)]

#[path = "cluster/support/mod.rs"]
mod support;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};

use bytes::BytesMut;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{Service, TestCluster};
use steadfast_wire::{Feature, FrameBuilder, Magic, Opcode, Status};
use support::{BUCKET, Client, USUAL, cluster, eventually};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Panics of connections, which tokio catches and hides.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// What the cluster logs, of all tests in this process.
static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            // A test that fails by itself panics on its own thread, and is none of these.
            let thread = std::thread::current();
            let worker = thread.name() == Some("tokio-rt-worker");
            PANICS.fetch_add(worker.into(), Ordering::SeqCst);
            usual(info);
        }));
        tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(|| Logged)
            .init();
    });
}

struct Logged;

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

async fn connect(cluster: &TestCluster) -> TcpStream {
    TcpStream::connect(&cluster.addresses(Service::KeyValue)[0])
        .await
        .unwrap()
}

/// Frames of every kind that a client sends, well-formed.
fn samples(client: &Client) -> Vec<Vec<u8>> {
    (0..=u8::MAX)
        .flat_map(|code| {
            let opcode = Opcode::from_code(code);
            let on = || client.on(opcode, "fuzzed");
            let mut frames: [BytesMut; 4] = Default::default();
            on().encode(&mut frames[0]).unwrap();
            on().extras([0u8; 8])
                .value("{\"a\":[1,2]}")
                .encode(&mut frames[1])
                .unwrap();
            on().extras([0u8; 20]).encode(&mut frames[2]).unwrap();
            on().extras([0, 1, 0, 0])
                .value("a[1]")
                .encode(&mut frames[3])
                .unwrap();
            frames.map(|frame| frame.to_vec())
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_on_many_connections_does_not_affect_others() {
    watch();
    let seed = steadfast_os::random::u128() as u64;
    println!("seed {seed}");
    let cluster = cluster(1, 0).await;
    let mut good = Client::for_key(&cluster, "good").await;
    good.set("good", "1").await;
    let samples = Arc::new(samples(&good));
    let mut attackers = tokio::task::JoinSet::new();
    for number in 0..32 {
        let (cluster, samples) = (cluster.clone(), samples.clone());
        attackers.spawn(async move {
            let mut random = SmallRng::seed_from_u64(seed.wrapping_add(number));
            for _ in 0..20 {
                attack(&cluster, &samples, &mut random).await;
            }
        });
    }
    while let Some(done) = attackers.join_next().await {
        assert_eq!(good.get("good").await.value(), b"1", "seed {seed}");
        done.unwrap();
    }
    assert_eq!(good.get("good").await.value(), b"1", "seed {seed}");
    assert_eq!(PANICS.load(Ordering::SeqCst), 0, "seed {seed}");
}

/// One connection's worth of nonsense: bytes that were never a frame, or frames with damage.
async fn attack(cluster: &TestCluster, samples: &[Vec<u8>], random: &mut SmallRng) {
    let authenticated = random.random_bool(0.8);
    let mut client = if authenticated {
        Client::ready(cluster, cluster.nodes()[0], USUAL).await
    } else {
        Client::connect(cluster, cluster.nodes()[0]).await
    };
    let mut bytes = Vec::new();
    for _ in 0..200 {
        if random.random_bool(0.02) {
            bytes.extend((0..random.random_range(1..100)).map(|_| random.random::<u8>()));
            continue;
        }
        let mut frame = samples[random.random_range(0..samples.len())].clone();
        // Bytes that tell lengths are spared more often, so that the rest is reached as well.
        let from = if random.random_bool(0.95) { 24 } else { 0 };
        for _ in 0..random.random_range(0..4) {
            let at = random.random_range(from.min(frame.len() - 1)..frame.len());
            frame[at] = random.random();
        }
        bytes.extend(frame);
    }
    client.send_what_it_takes(&bytes).await;
}

#[tokio::test]
async fn an_invalid_frame_closes_its_connection_and_is_logged() {
    watch();
    let cluster = cluster(1, 0).await;
    let mut good = Client::for_key(&cluster, "k").await;
    let header = |change: fn(&mut [u8; 24])| {
        let mut header = [0; 24];
        (header[0], header[1]) = (0x80, 0x01);
        change(&mut header);
        header
    };
    let malformed = [
        header(|header| header[0] = 0x42),
        header(|header| header[0] = 0x81),
        header(|header| header[8..12].fill(0xff)),
        header(|header| header[8..12].copy_from_slice(&(64u32 << 20).to_be_bytes())),
        header(|header| header[2..4].fill(0xff)),
        header(|header| header[4] = 0xff),
        header(|header| (header[0], header[2], header[3]) = (0x08, 0xff, 0xff)),
    ];
    for bytes in malformed {
        let mut bad = connect(&cluster).await;
        let line = format!("peer={} ", bad.local_addr().unwrap());
        bad.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        // Closed, or reset because something was still unread: either way it is over.
        let _ = bad.read_to_end(&mut answer).await;
        assert!(answer.is_empty(), "{bytes:02x?} was answered");
        let lines = || {
            let log = LOG.lock().unwrap();
            let log = String::from_utf8_lossy(&log).into_owned();
            log.lines()
                .filter(|logged| logged.contains("malformed frame") && logged.contains(&line))
                .count()
        };
        eventually("a line in the log", || lines() == 1).await;
        assert_eq!(good.set("k", "1").await.status(), Status::Success);
    }
}

#[tokio::test]
async fn thousands_of_connections_leave_nothing_behind() {
    watch();
    let cluster = cluster(1, 0).await;
    let mut good = Client::for_key(&cluster, "k").await;
    good.set("k", "1").await;
    let before = open_files();
    for round in 0..60u8 {
        let mut streams = Vec::new();
        for number in 0..50u8 {
            let mut stream = connect(&cluster).await;
            // Nothing, part of a header, or a header without its body.
            let started = [
                0x80, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ];
            let part = usize::from(number.wrapping_add(round) % 25);
            stream.write_all(&started[..part]).await.unwrap();
            streams.push(stream);
        }
        assert_eq!(good.get("k").await.value(), b"1");
    }
    eventually("all connections are gone", || open_files() <= before + 2).await;
}

/// Returns how many files this process has open, where that can be seen. Other tests run at the
/// same time, so it is only compared after waiting.
fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[tokio::test]
async fn a_connection_that_sends_commands_out_of_order_gets_an_error() {
    watch();
    let cluster = cluster(1, 0).await;
    cluster
        .users()
        .put("other", "o", Rights::buckets(["elsewhere".to_owned()]));
    let mut client = Client::connect(&cluster, cluster.nodes()[0]).await;
    // Before authentication, only the commands of the set-up are allowed.
    assert_eq!(client.get("k").await.status(), Status::AccessError);
    assert_eq!(client.select(BUCKET).await, Status::AccessError);
    let config = || FrameBuilder::request(Opcode::GetClusterConfig);
    assert_eq!(client.call(config()).await.status(), Status::AccessError);
    // The second step of an exchange that has not begun, and invalid steps.
    let step = || {
        FrameBuilder::request(Opcode::SaslStep)
            .key("SCRAM-SHA512")
            .value("c=biws")
    };
    assert_eq!(client.call(step()).await.status(), Status::InvalidArguments);
    let auth = |mechanism: &'static str, message: &'static str| {
        FrameBuilder::request(Opcode::SaslAuth)
            .key(mechanism)
            .value(message)
    };
    for (mechanism, message) in [
        ("NONSENSE", "x"),
        ("PLAIN", ""),
        ("PLAIN", "no separators"),
        ("PLAIN", "\0app\0wrong"),
        ("SCRAM-SHA512", ""),
        ("SCRAM-SHA512", "n,,"),
        ("SCRAM-SHA512", "n,,n=app"),
        ("SCRAM-SHA512", "y,,,,,,"),
    ] {
        let answer = client.call(auth(mechanism, message)).await;
        assert_eq!(
            answer.status(),
            Status::AuthError,
            "{mechanism} {message:?}"
        );
    }
    let unnamed = client.call(auth("", "")).await;
    assert_eq!(unnamed.status(), Status::InvalidArguments);
    let first = client.call(auth("SCRAM-SHA512", "n,,n=app,r=nonce")).await;
    assert_eq!(first.status(), Status::AuthContinue);
    assert_eq!(client.call(step()).await.status(), Status::AuthError);
    assert_eq!(client.call(step()).await.status(), Status::InvalidArguments);
    // After all that, the right way still works, and features may come late.
    assert_eq!(client.authenticate("app", "secret").await, Status::Success);
    assert_eq!(client.get("k").await.status(), Status::NoBucket);
    assert_eq!(client.select(BUCKET).await, Status::Success);
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
    assert_eq!(client.hello(USUAL).await.len(), USUAL.len());
    assert_eq!(client.get("k").await.value(), b"1");
    // Whoever comes next on the same connection gets no more than is theirs.
    assert_eq!(client.authenticate("app", "wrong").await, Status::AuthError);
    assert_eq!(client.get("k").await.status(), Status::AccessError);
    assert_eq!(client.authenticate("other", "o").await, Status::Success);
    assert_eq!(client.get("k").await.status(), Status::NoBucket);
    assert_eq!(client.select(BUCKET).await, Status::AccessError);
}

#[tokio::test]
async fn a_slow_reader_gets_only_the_newest_map() {
    watch();
    let cluster = cluster(1, 0).await;
    let told = [Feature::Duplex, Feature::ClustermapChangeNotification];
    let features: Vec<Feature> = USUAL.iter().chain(&told).copied().collect();
    let mut slow = Client::ready(&cluster, cluster.nodes()[0], &features).await;
    assert_eq!(
        slow.set("k", &"x".repeat(1 << 20)).await.status(),
        Status::Success
    );
    // More than the sockets hold between them, so that answers wait in the server.
    let requests = 40;
    for _ in 0..requests {
        slow.send(slow.on(Opcode::Get, "k")).await;
    }
    let mut other = Client::for_key(&cluster, "k").await;
    let published = 30;
    for number in 0..published {
        cluster.create_scope(BUCKET, &format!("s{number}")).unwrap();
        // Lets the slow connection see each map by itself.
        other.get("k").await;
    }
    let (mut answers, mut maps) = (0, Vec::new());
    while answers < requests || maps.is_empty() {
        let frame = slow.receive().await.unwrap();
        if frame.header().magic == Magic::ServerRequest {
            maps.push(frame);
        } else {
            answers += 1;
        }
    }
    assert!(
        maps.len() < published / 2,
        "{} maps were kept for it",
        maps.len()
    );
    // The last one is the newest: nothing newer follows an answer to a question now.
    assert_eq!(slow.get("k").await.status(), Status::Success);
}
