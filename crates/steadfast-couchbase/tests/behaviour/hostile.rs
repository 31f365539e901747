//! Servers that are broken or mean it: they cost at most their connection and
//! the deadlines of the operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Instant;

use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::{Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, config, frame_of};

/// An operation against a server that is of no use ends at its deadline, and the
/// server is not dialled all the time.
async fn is_of_no_use(server: &Scripted) {
    let (_cluster, documents) = server.opened().await;
    let outcome = documents.upsert("k", &1).timeout(ms(500)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(!error.is_ambiguous());
    assert!(error.attempts() < 30, "{error:#}");
    // Two are dialled, one without a bucket: 2, 4, 8 … 256 ms apart, or half.
    let dials = server.dials();
    assert!((2..40).contains(&dials), "dialled {dials} times");
}

#[tokio::test]
async fn a_server_that_closes_after_accepting_is_not_dialled_without_end() {
    is_of_no_use(&Scripted::with_sockets(|socket| async move { drop(socket) }).await).await;
}

#[tokio::test]
async fn a_server_that_sends_garbage_costs_a_connection() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let random = Arc::new(AtomicI64::new(seed as i64));
    let server = Scripted::with_sockets(move |mut socket| {
        let seed = random.fetch_add(1, Ordering::Relaxed) as u64;
        async move {
            let mut garbage = vec![0; 4096];
            fastrand::Rng::with_seed(seed).fill(&mut garbage);
            let _ = socket.write_all(&garbage).await;
            let _ = socket.read_to_end(&mut garbage).await;
        }
    })
    .await;
    is_of_no_use(&server).await;
}

#[tokio::test]
async fn a_server_that_repeats_a_handshake_response_is_disconnected() {
    let written = Arc::new(AtomicI64::new(0));
    let count = written.clone();
    let server = Scripted::with_sockets(move |mut socket| {
        let written = count.clone();
        async move {
            // An answer to HELLO, again and again.
            let answer: Vec<u8> = [0x81, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
                .into_iter()
                .chain([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
                .collect();
            let flood = answer.repeat(1000);
            while socket.write_all(&flood).await.is_ok() {
                written.fetch_add(flood.len() as i64, Ordering::Relaxed);
            }
        }
    })
    .await;
    is_of_no_use(&server).await;
    until("its connections are closed", || {
        server.open.load(Ordering::Relaxed) == 0
    })
    .await;
    let each = written.load(Ordering::Relaxed) / i64::from(server.dials());
    assert!(each < 32 << 20, "it took {each} bytes");
}

#[tokio::test]
async fn a_server_that_hangs_up_on_every_operation_is_not_dialled_without_end() {
    let gets = Arc::new(AtomicU32::new(0));
    let count = gets.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Get => {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::Close
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let outcome = documents.get("k").timeout(ms(800)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(
        reasons(&error).contains(&"SOCKET_CLOSED_WHILE_IN_FLIGHT"),
        "{error:#}"
    );
    assert!(gets.load(Ordering::Relaxed) < 30, "{gets:?} attempts");
    assert!(server.dials() < 40, "dialled {} times", server.dials());
}

#[tokio::test]
async fn an_expiry_out_of_range_is_an_error() {
    let server = Scripted::start(|frame| match frame.opcode() {
        Opcode::SubdocMultiLookup => {
            let metadata = format!(r#"{{"exptime":{},"flags":0}}"#, u64::MAX);
            let mut value = Vec::new();
            for part in [metadata.as_bytes(), b"1"] {
                value.extend([0, 0]);
                value.extend((part.len() as u32).to_be_bytes());
                value.extend(part);
            }
            Reply::Answer(Status::Success, value)
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let error = documents.get("k").with_expiry().timeout(LONG).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodingFailure, "{error:#}");
    assert!(error.to_string().contains("out of range"), "{error}");
}

#[tokio::test]
async fn a_write_with_an_invalid_response_reports_that_it_was_applied() {
    let server = Scripted::start(|frame| match frame.opcode() {
        Opcode::Increment => Reply::Answer(Status::Success, vec![1, 2, 3]),
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let outcome = documents.increment("n").timeout(LONG).await;
    let error = fails_with(outcome, ErrorKind::DecodingFailure);
    assert!(
        error.to_string().contains("the write was applied"),
        "{error}"
    );
}

#[tokio::test]
async fn half_a_response_ends_in_a_timeout() {
    let server = Scripted::start(|frame| match (frame.opcode(), frame.key()) {
        (Opcode::Get, [.., b'h']) => {
            let whole = frame_of(frame, Status::Success, b"1");
            Reply::Raw(whole[..whole.len() / 2].to_vec())
        }
        (Opcode::Get, _) => Reply::Answer(Status::Success, b"1".to_vec()),
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    documents.get("k").timeout(LONG).await.unwrap();
    let outcome = documents.get("h").timeout(ms(100)).await;
    fails_with(outcome, ErrorKind::UnambiguousTimeout);
    // The next response is read as the other half, which is invalid.
    documents.get("k").timeout(LONG).await.ok();
    documents.get("k").timeout(LONG).await.unwrap();
}

#[tokio::test]
async fn a_response_with_another_opcode_closes_the_connection() {
    let answered = Arc::new(AtomicU32::new(0));
    let count = answered.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Get if count.fetch_add(1, Ordering::Relaxed) < 3 => {
            let mut bytes = frame_of(frame, Status::Success, b"1");
            bytes[1] = Opcode::Set.code();
            Reply::Raw(bytes)
        }
        Opcode::Get => Reply::Answer(Status::Success, b"1".to_vec()),
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    documents.get("k").timeout(LONG).await.unwrap();
    assert_eq!(answered.load(Ordering::Relaxed), 4);
    assert!(server.dials() >= 5, "dialled {} times", server.dials());
}

#[tokio::test]
async fn a_compressed_value_of_gigabytes_is_not_decompressed() {
    let server = Scripted::start(|frame| match frame.opcode() {
        Opcode::Get => {
            let mut bytes = frame_of(frame, Status::Success, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0]);
            bytes[5] = 0x02;
            Reply::Raw(bytes)
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let outcome = documents.get("k").timeout(LONG).await;
    fails_with(outcome, ErrorKind::DecodingFailure);
}

/// Two servers, each of which says that the other has it, with a newer config
/// each time.
async fn a_hall_of_mirrors() -> (Scripted, Scripted, Arc<AtomicU32>) {
    let (rev, asked) = (Arc::new(AtomicI64::new(2)), Arc::new(AtomicU32::new(0)));
    let mut listeners = Vec::new();
    for _ in 0..2 {
        listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
    }
    let ports: Vec<u16> = listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap().port())
        .collect();
    let mut servers = listeners.into_iter().enumerate().map(|(place, listener)| {
        let (ports, rev, asked) = (ports.clone(), rev.clone(), asked.clone());
        Scripted::on(listener, move |frame| match frame.opcode() {
            Opcode::Get | Opcode::Set => {
                asked.fetch_add(1, Ordering::Relaxed);
                let rev = rev.fetch_add(1, Ordering::Relaxed);
                let newer = config(1, rev, &ports, 1 - place);
                Reply::Answer(Status::NotMyVbucket, newer.into_bytes())
            }
            Opcode::GetClusterConfig => {
                let known = config(1, 1, &ports, place);
                Reply::Answer(Status::Success, known.into_bytes())
            }
            _ => Reply::Usual,
        })
    });
    (servers.next().unwrap(), servers.next().unwrap(), asked)
}

#[tokio::test]
async fn ever_newer_configs_do_not_make_an_operation_spin() {
    let (one, _other, asked) = a_hall_of_mirrors().await;
    let cluster = one.client(ClusterOptions::new()).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.upsert("k", &1).timeout(ms(1000)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(reasons(&error).contains(&"KV_NOT_MY_VBUCKET"), "{error:#}");
    let asked = asked.load(Ordering::Relaxed);
    assert!(asked < 40, "asked {asked} times");
}

#[tokio::test]
async fn many_notifications_cause_few_config_requests() {
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => {
            count.fetch_add(1, Ordering::Relaxed);
            Reply::Usual
        }
        Opcode::Get => {
            // A thousand times: there is a newer config.
            let mut bytes = Vec::new();
            for rev in 0..1000_i64 {
                let mut pushed = vec![0x82, 0x01, 0, 6, 16, 0, 0, 0, 0, 0, 0, 22];
                pushed.extend_from_slice(&[0; 12]);
                pushed.extend_from_slice(&1_i64.to_be_bytes());
                pushed.extend_from_slice(&(1000 + rev).to_be_bytes());
                pushed.extend_from_slice(BUCKET.as_bytes());
                bytes.extend_from_slice(&pushed);
            }
            bytes.extend_from_slice(&frame_of(frame, Status::Success, b"1"));
            Reply::Raw(bytes)
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    let start = Instant::now();
    for _ in 0..20 {
        documents.get("k").timeout(LONG).await.unwrap();
        tokio::time::sleep(ms(10)).await;
    }
    let most = 10 + start.elapsed().as_millis() as u32 / 50;
    let asked = asked.load(Ordering::Relaxed);
    assert!((3..most).contains(&asked), "asked {asked} times");
}

#[tokio::test]
async fn a_config_with_countless_nodes_is_not_dialled() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let countless = config(1, 1, &vec![port; 20_000], 0);
    let server = Scripted::on(listener, move |frame| match frame.opcode() {
        Opcode::GetClusterConfig => Reply::Answer(Status::Success, countless.clone().into_bytes()),
        _ => Reply::Usual,
    });
    is_of_no_use(&server).await;
}

#[tokio::test]
async fn invalid_configs_end_in_a_timeout() {
    let port = 1;
    let nobody = config(1, 1, &[port], 0);
    for bad in [
        "{}".to_owned(),
        "[1, 2".to_owned(),
        "x".repeat(100_000),
        nobody.replace("[[0]", "[[7]"),
        nobody.replace(BUCKET, "other"),
        nobody,
    ] {
        let text = bad.clone();
        let server = Scripted::start(move |frame| match frame.opcode() {
            Opcode::GetClusterConfig => Reply::Answer(Status::Success, bad.clone().into_bytes()),
            _ => Reply::Usual,
        })
        .await;
        let (_cluster, documents) = server.opened().await;
        let error = documents
            .upsert("k", &1)
            .timeout(ms(300))
            .await
            .unwrap_err();
        let start = &text[..text.len().min(40)];
        assert_eq!(
            error.kind(),
            ErrorKind::UnambiguousTimeout,
            "{start}: {error:#}"
        );
        assert!(
            server.dials() < 40,
            "{start}: dialled {} times",
            server.dials()
        );
    }
}
