//! Invalid responses: they cost at most the connection and the deadline.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::{TestClient, reasons};
use crate::Query;
use crate::error::ErrorKind;

/// A server that reads a request and then writes this, endlessly if asked.
struct Liar {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Liar {
    async fn new(first: impl Into<Vec<u8>>, endless: Option<&'static [u8]>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let first = first.into();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(lie(stream, first.clone(), endless));
            }
        });
        Self {
            address,
            connections,
            task,
        }
    }

    fn query(&self, readonly: bool) -> Query {
        let client = TestClient::at(&[self.address]);
        client.query("SELECT 1").readonly(readonly)
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn lie(mut stream: TcpStream, first: Vec<u8>, endless: Option<&'static [u8]>) {
    let mut request = [0; 4096];
    if stream.read(&mut request).await.is_err() || stream.write_all(&first).await.is_err() {
        return;
    }
    if let Some(more) = endless {
        while stream.write_all(more).await.is_ok() {}
    }
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}")
}

#[tokio::test]
async fn invalid_responses_are_errors() {
    let long = "x".repeat(200_000);
    for (lie, kind, reason) in [
        (
            "\u{1}\u{2}garbage\r\n\r\n".to_owned(),
            ErrorKind::RequestCanceled,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        ),
        (
            answer(&format!("x: {long}"), ""),
            ErrorKind::RequestCanceled,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        ),
        (
            answer("content-length: -5", "{}"),
            ErrorKind::RequestCanceled,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        ),
        (
            answer("content-length: 100", r#"{"results":["#),
            ErrorKind::RequestCanceled,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        ),
        (
            answer("transfer-encoding: chunked", "zz\r\n"),
            ErrorKind::RequestCanceled,
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
        ),
        (
            answer("connection: close", r#"{"results":["#),
            ErrorKind::DecodingFailure,
            "UNKNOWN",
        ),
        (
            answer("connection: close", "hello"),
            ErrorKind::DecodingFailure,
            "UNKNOWN",
        ),
        (
            answer("connection: close", r#"{"status":"success"}"#),
            ErrorKind::DecodingFailure,
            "UNKNOWN",
        ),
    ] {
        let shown: String = lie.chars().take(60).collect();
        let liar = Liar::new(lie, None).await;
        // A write: whatever it was, it may have been applied, and is not repeated.
        let error = liar.query(false).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{shown:?}: {error:#}");
        assert_eq!(reasons(&error), [reason], "{shown:?}");
        assert!(error.is_ambiguous(), "{shown:?}");
        assert_eq!(liar.connections.load(Ordering::Relaxed), 1);
        let timeout = Duration::from_millis(100);
        let error = liar.query(true).timeout(timeout).await.unwrap_err();
        assert!(!error.is_ambiguous(), "{shown:?}");
    }
}

#[tokio::test]
async fn endless_responses_end_at_a_limit_or_the_deadline() {
    let started = Instant::now();
    for (first, endless) in [
        // A head without an end, a member, a name, an error, nothing at all.
        (
            "HTTP/1.1 200 OK\r\nx: ".to_owned(),
            &b"yyyyyyyyyyyyyyyy"[..],
        ),
        (answer("connection: close", r#"{"a":""#), &[b'x'; 65536]),
        (answer("connection: close", r#"{""#), &[b'x'; 65536]),
        (answer("connection: close", ""), &[b' '; 4096]),
        (
            "HTTP/1.1 500 No\r\nconnection: close\r\n\r\n".to_owned(),
            &[b'x'; 65536],
        ),
        (
            answer("transfer-encoding: chunked", ""),
            b"1;extension=of-a-chunk\r\n \r\n",
        ),
    ] {
        let liar = Liar::new(first.clone(), Some(endless)).await;
        let timeout = Duration::from_millis(500);
        let error = liar.query(false).timeout(timeout).await.unwrap_err();
        assert!(error.is_ambiguous(), "{first:?}: {error:#}");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn endless_rows_end_at_the_deadline_and_an_endless_row_at_its_limit() {
    let head = answer("connection: close", r#"{"results":[1"#);
    let liar = Liar::new(head, Some(b",1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1")).await;
    let timeout = Duration::from_millis(500);
    let mut rows = liar.query(true).timeout(timeout).await.unwrap();
    let error = loop {
        match rows.next::<Value>().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it has no end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error}");
    let head = answer("connection: close", r#"{"results":[1,""#);
    let liar = Liar::new(head, Some(&[b'x'; 65536])).await;
    let asked = liar.query(true).max_row_size(1 << 20);
    let mut rows = asked.timeout(Duration::from_secs(10)).await.unwrap();
    let error = rows.all::<Value>().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodingFailure, "{error}");
    assert!(error.to_string().contains("too long"), "{error}");
}

#[tokio::test]
async fn a_row_of_another_type_is_an_error_that_does_not_quote_it() {
    let body = r#"{"results":["hunter2",{"hunter2":!},3]}"#;
    let liar = Liar::new(answer("connection: close", body), None).await;
    let mut rows = liar.query(true).await.unwrap();
    let misread = rows.next::<u8>().await.unwrap_err();
    let broken = rows.next::<Value>().await.unwrap_err();
    for error in [misread, broken] {
        assert_eq!(error.kind(), ErrorKind::DecodingFailure);
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
    assert_eq!(rows.next::<u8>().await.unwrap(), None);
    assert!(rows.meta().is_none(), "it did not end well");
}

#[tokio::test]
async fn management_responses_are_bounded() {
    let liar = Liar::new(answer("connection: close", ""), Some(&[b'x'; 65536])).await;
    let management = TestClient::at(&[liar.address]).management();
    let timeout = Duration::from_secs(30);
    let error = management.get("/x").timeout(timeout).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DecodingFailure, "{error}");
}

#[tokio::test]
async fn idle_connections_are_closed_and_busy_ones_reused() {
    let cluster = super::support::cluster(1).await;
    let address = cluster.addresses(steadfast_cluster::Service::Query)[0].clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TestClient::at(&[listener.local_addr().unwrap()]);
    let (opened, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (open, close) = (opened.clone(), closed.clone());
    let relay = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            open.fetch_add(1, Ordering::Relaxed);
            let mut server = TcpStream::connect(&address).await.unwrap();
            let close = close.clone();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                close.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
    for _ in 0..5 {
        let mut rows = client.query("SELECT RAW 1").await.unwrap();
        rows.all::<u8>().await.unwrap();
    }
    assert_eq!(opened.load(Ordering::Relaxed), 1);
    super::support::eventually("the idle connection is closed", || {
        closed.load(Ordering::Relaxed) == 1
    })
    .await;
    relay.abort();
}
