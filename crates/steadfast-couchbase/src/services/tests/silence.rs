//! HTTP connections that go silent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::support::{TestClient, eventually};
use crate::Cluster;
use crate::error::{Error, ErrorKind};
use crate::options::ClusterOptions;

const LONG: Duration = Duration::from_secs(30);

/// A server whose first connections go silent.
#[derive(Default)]
struct Silencing {
    /// The connections so far.
    opened: AtomicUsize,
    /// Those below this number do not answer.
    silent: AtomicUsize,
    /// The requests so far.
    asked: AtomicUsize,
    /// No request is answered before this number has arrived.
    together: AtomicUsize,
}

impl Silencing {
    async fn start(together: usize) -> (SocketAddr, Arc<Self>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let this = Arc::new(Self::default());
        this.together.store(together, Ordering::Relaxed);
        let server = this.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let number = server.opened.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(server.clone().serve(socket, number));
            }
        });
        (address, this)
    }

    async fn serve(self: Arc<Self>, mut socket: TcpStream, number: usize) {
        let mut read = Vec::new();
        while let Ok(1..) = socket.read_buf(&mut read).await {
            // The body of a query is a JSON object at the end of the request.
            if !read.ends_with(b"}") {
                continue;
            }
            read.clear();
            self.asked.fetch_add(1, Ordering::Relaxed);
            eventually("all are asked together", || {
                self.asked.load(Ordering::Relaxed) >= self.together.load(Ordering::Relaxed)
            })
            .await;
            if number >= self.silent.load(Ordering::Relaxed) {
                let body = r#"{"results":[1],"status":"success"}"#;
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                let answer = head + body;
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    }
}

async fn read(client: &Cluster, timeout: Duration) -> Result<(), Error> {
    let query = client.query("SELECT RAW 1").readonly(true);
    query.timeout(timeout).await?.all::<u8>().await.map(drop)
}

#[tokio::test]
async fn idle_connections_are_not_used_after_a_request_to_their_node_timed_out() {
    let (address, server) = Silencing::start(2).await;
    let kept = ClusterOptions::new().idle_http_timeout(2 * LONG);
    let client = TestClient::with_at(kept, &[address]);
    let (first, second) = tokio::join!(read(&client, LONG), read(&client, LONG));
    first.and(second).unwrap();
    assert_eq!(server.opened.load(Ordering::Relaxed), 2);
    server.silent.store(2, Ordering::Relaxed);
    let error = read(&client, Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
    // The other idle connection is silent too, and is not tried.
    read(&client, LONG).await.unwrap();
    assert_eq!(server.opened.load(Ordering::Relaxed), 3);
    assert_eq!(server.asked.load(Ordering::Relaxed), 4);
    read(&client, LONG).await.unwrap();
    assert_eq!(server.opened.load(Ordering::Relaxed), 3, "reused");
}
