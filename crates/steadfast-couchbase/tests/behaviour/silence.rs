//! Connections that go silent, and slow ones that do not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::Raw;
use steadfast_couchbase::options::{BreakerSettings, Compression, TlsOptions};
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, ErrorKind};
use steadfast_wire::{Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, config};

/// The timeout of operations here.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The promise is a timeout and a second. A busy machine may take longer; without
/// the promise it takes until the end of the test.
const SERVICE_AGAIN: Duration = Duration::from_millis(500 + 1000 + 3000);

/// Reads until a read succeeds. Returns the time from the first to that.
async fn service_again(documents: &Collection) -> Duration {
    let start = Instant::now();
    loop {
        match documents.get("k").timeout(TIMEOUT).await {
            Ok(_) => return start.elapsed(),
            Err(error) => assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}"),
        }
        assert!(start.elapsed() < LONG, "still silent");
    }
}

async fn recovers_from_silence(server: &TestCluster, cluster: &Cluster) {
    let documents = warm(server, cluster).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    for _ in 0..3 {
        let silent = server.fault(Fault::on(Opcode::Get).times(1).silent());
        let took = service_again(&documents).await;
        assert_eq!(silent.fired(), 1);
        assert!(took < SERVICE_AGAIN, "{took:?}");
        println!("service again after {took:?}");
    }
}

#[tokio::test]
async fn a_connection_that_goes_silent_is_replaced() {
    let server = server(1, 0).await;
    let cluster = client(&server).await;
    recovers_from_silence(&server, &cluster).await;
}

#[tokio::test]
async fn a_connection_with_tls_that_goes_silent_is_replaced() {
    let server = builder(1, 0).tls(true).start().await.unwrap();
    let tls = TlsOptions::new().trust_pem(server.ca_pem().unwrap());
    let string = server.tls_connection_string().unwrap();
    let cluster = connect(&string, app(), ClusterOptions::new().tls(tls)).await;
    recovers_from_silence(&server, &cluster).await;
}

#[tokio::test]
async fn what_is_in_flight_on_a_silent_connection_ends_as_in_flight() {
    let (server, _cluster, documents) = started(1, 0).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let held = server.fault(Fault::on(Opcode::Set).hold());
    let write = spawn_upsert(&documents, "w", &1);
    until("it is in flight", || held.fired() == 1).await;
    let silent = server.fault(Fault::on(Opcode::Get).times(1).silent());
    let patient = spawn_get(&documents, "k");
    until("it is silent", || silent.fired() == 1).await;
    let outcome = documents.get("k").timeout(TIMEOUT).await;
    assert!(outcome.is_err());
    let error = fails_with(write.await.unwrap(), ErrorKind::RequestCanceled);
    assert!(error.is_ambiguous());
    assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
    assert!(format!("{error:#}").contains("went silent"), "{error:#}");
    // A read is sent again, over the new connection.
    patient.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_caller_with_its_own_timeout_reveals_the_silence_too() {
    let server = server(1, 0).await;
    let options = ClusterOptions::new().kv_timeout(TIMEOUT);
    let (_cluster, documents) = warm_client(&server, options).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let silent = server.fault(Fault::on(Opcode::Get).times(1).silent());
    let start = Instant::now();
    // Dropped long before the deadline.
    while tokio::time::timeout(TIMEOUT / 5, documents.get("k"))
        .await
        .is_err()
    {
        assert!(start.elapsed() < LONG, "still silent");
    }
    assert_eq!(silent.fired(), 1);
    let took = start.elapsed();
    assert!(took < SERVICE_AGAIN, "{took:?}");
}

#[tokio::test]
async fn the_circuit_breaker_counts_operations_on_a_silent_connection() {
    let server = server(1, 0).await;
    let breaker = BreakerSettings {
        volume_threshold: 2,
        ..BreakerSettings::default()
    };
    let options = ClusterOptions::new().circuit_breaker(breaker);
    let (_cluster, documents) = warm_client(&server, options).await;
    let _silent = server.fault(Fault::on(Opcode::Get).silent());
    for _ in 0..3 {
        let outcome = documents.get("k").timeout(ms(100)).await;
        fails_with(outcome, ErrorKind::UnambiguousTimeout);
    }
    let outcome = documents.get("k").timeout(ms(100)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["CIRCUIT_BREAKER_OPEN"]);
}

#[tokio::test]
async fn a_dial_that_hangs_is_overtaken_by_a_fresh_one() {
    // Two in three handshakes hang, at different steps.
    for step in [Opcode::Hello, Opcode::SaslAuth, Opcode::GetClusterConfig] {
        let hellos = Arc::new(AtomicU32::new(0));
        let count = hellos.clone();
        let server = Scripted::start(move |frame| {
            if frame.opcode() == Opcode::Hello {
                count.fetch_add(1, Ordering::Relaxed);
            }
            let hangs = count.load(Ordering::Relaxed) < 4;
            if frame.opcode() == step && hangs {
                Reply::Silence
            } else {
                Reply::Usual
            }
        })
        .await;
        let start = Instant::now();
        let cluster = server.client(ClusterOptions::new()).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        documents.get("k").timeout(LONG).await.unwrap();
        // One dial alone would hang for the connect timeout of 10 s.
        let took = start.elapsed();
        assert!(took < SERVICE_AGAIN, "{step}: {took:?}");
    }
}

#[tokio::test]
async fn a_connection_that_only_fetches_configs_is_replaced_too() {
    let silent = Arc::new(AtomicBool::new(false));
    let is_silent = silent.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Hello => {
            // A new connection works.
            is_silent.store(false, Ordering::Relaxed);
            Reply::Usual
        }
        _ if is_silent.load(Ordering::Relaxed) => Reply::Silence,
        _ => Reply::Usual,
    })
    .await;
    let options = ClusterOptions::new()
        .config_push(false)
        .config_poll_interval(ms(100));
    let _cluster = server.client(options).await;
    until("it is connected", || server.dials() == 1).await;
    // The config of the handshake is the first.
    tokio::time::sleep(ms(50)).await;
    silent.store(true, Ordering::Relaxed);
    until("it is dialled again", || server.dials() == 2).await;
}

#[tokio::test]
async fn a_node_that_stalls_all_operations_but_answers_probes_keeps_its_connection() {
    let probes = Arc::new(AtomicU32::new(0));
    let count = probes.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Get => Reply::Raw(Vec::new()),
        // The probe is a command that the server reorders.
        Opcode::GetReplica => {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::Usual
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    let dials = server.dials();
    for _ in 0..5 {
        let outcome = documents.get("k").timeout(ms(100)).await;
        fails_with(outcome, ErrorKind::UnambiguousTimeout);
    }
    until("it was probed", || probes.load(Ordering::Relaxed) > 0).await;
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(server.dials(), dials);
}

/// Forwards connections to a server. Forwards at most 1 MB/s to it, and the system's buffers take
/// more at once.
async fn forward_slowly(tunnel: TcpListener, server: SocketAddr) {
    while let Ok((client, _)) = tunnel.accept().await {
        tokio::spawn(async move {
            let (mut requests, mut client) = client.into_split();
            let server = TcpStream::connect(server).await.unwrap();
            let (mut responses, mut server) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut responses, &mut client).await });
            let mut piece = vec![0; 100_000];
            while let Ok(len @ 1..) = requests.read(&mut piece).await {
                server.write_all(&piece[..len]).await.unwrap();
                tokio::time::sleep(ms(len as u64 / 1000)).await;
            }
        });
    }
}

#[tokio::test]
async fn a_large_value_through_a_slow_tunnel_keeps_its_connection() {
    let tunnel = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tunnel.local_addr().unwrap();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            let config = config(1, 1, &[address.port()], 0);
            Reply::Answer(Status::Success, config.into_bytes())
        }
        _ => Reply::Usual,
    })
    .await;
    let forwarding = tokio::spawn(forward_slowly(tunnel, server.address));
    let options = ClusterOptions::new().compression(Compression::Off);
    let options = options.allow_secrets_without_tls(true);
    let cluster = connect(&format!("couchbase://{address}"), app(), options).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.get("k").timeout(LONG).await.unwrap();
    let large = Raw::binary(vec![7; 3_000_000]);
    let write = tokio::spawn({
        let documents = documents.clone();
        async move { documents.upsert_raw("large", large).timeout(LONG).await }
    });
    tokio::task::yield_now().await;
    // Its timeout causes a probe, which is behind the value too.
    let behind = documents.get("k").timeout(TIMEOUT).await;
    fails_with(behind, ErrorKind::UnambiguousTimeout);
    write.await.unwrap().unwrap();
    forwarding.abort();
}
