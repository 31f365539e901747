//! A real HTTP server on a real socket that does what it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What the server does with one request. After the last of its script, it
/// answers 200.
#[derive(Clone, Debug)]
pub enum Do {
    /// Reads the request and answers so.
    Answer(u16, Vec<(&'static str, String)>),
    /// Closes the connection as soon as the first byte is there.
    CloseUnread,
    /// Reads the whole request, then closes the connection.
    CloseRead,
    /// Reads the request, answers a part, and closes the connection.
    CloseAnswering,
    /// Reads the request and never answers.
    Hang,
    /// Has somebody else answer, and then closes the connection.
    Forward(SocketAddr),
    /// From here on, does the one the first time that it sees a request, and the
    /// other when it sees one with the same path and body again.
    OnceEach(Box<Do>, Box<Do>),
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    fn path(&self) -> Option<&str> {
        self.head.split(' ').nth(1)
    }
}

pub struct Server {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

struct Shared {
    script: Mutex<VecDeque<Do>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

pub fn answer(status: u16) -> Do {
    Do::Answer(status, Vec::new())
}

pub fn with(status: u16, header: &'static str, value: impl Into<String>) -> Do {
    Do::Answer(status, vec![(header, value.into())])
}

/// From here on, does this the first time that it sees a request, and answers
/// 200 when it sees it again.
pub fn once_each(act: Do) -> Do {
    Do::OnceEach(Box::new(act), Box::new(answer(200)))
}

impl Server {
    pub async fn start(script: impl IntoIterator<Item = Do>) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), script).await
    }

    pub async fn start_at(address: SocketAddr, script: impl IntoIterator<Item = Do>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into_iter().collect()),
            seen: Arc::clone(&seen),
        });
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let accepting = tokio::spawn(async move {
            // Dropped with this task, and the connections with it.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self {
            address,
            seen,
            connections,
            accepting,
        }
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Goes away, with all its connections. What it saw is what it did.
    pub async fn stop(self) -> Vec<Seen> {
        self.accepting.abort();
        let _ = self.accepting.await;
        self.seen.lock().unwrap().clone()
    }

    pub fn uri(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The requests that were read in full.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// An address at which nobody listens, and nobody will while the socket is held.
pub fn nobody() -> (tokio::net::TcpSocket, String) {
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let uri = format!("http://{}/", held.local_addr().unwrap());
    (held, uri)
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut buffer = Vec::new();
    loop {
        // Nothing is decided before a request begins: a client may keep the
        // connection in its pool.
        if buffer.is_empty() && stream.readable().await.is_err() {
            return;
        }
        let mut first = [0];
        if buffer.is_empty() && !matches!(stream.peek(&mut first).await, Ok(1)) {
            return;
        }
        let act = {
            let mut script = shared.script.lock().unwrap();
            match script.front() {
                Some(last @ Do::OnceEach(..)) => last.clone(),
                Some(_) | None => script.pop_front().unwrap_or_else(|| answer(200)),
            }
        };
        if matches!(act, Do::CloseUnread) {
            return;
        }
        let Some(request) = read(&mut stream, &mut buffer).await else {
            return;
        };
        let known = {
            let mut seen = shared.seen.lock().unwrap();
            let same = |seen: &Seen| seen.path() == request.path() && seen.body == request.body;
            let known = seen.iter().any(same);
            seen.push(request.clone());
            known
        };
        let act = match act {
            Do::OnceEach(_, then) if known => *then,
            Do::OnceEach(first, _) => *first,
            act => act,
        };
        match act {
            Do::Answer(status, headers) => {
                let headers: String = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n"))
                    .collect();
                let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: 2\r\n\r\n{{}}");
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
            }
            Do::Forward(to) => {
                let answer = forward(to, &request).await.unwrap();
                let _ = stream.write_all(&answer).await;
                return;
            }
            Do::CloseAnswering => {
                let part = b"HTTP/1.1 200 x\r\ncontent-length: 1000\r\n\r\nnot all of it";
                let _ = stream.write_all(part).await;
                return;
            }
            Do::CloseUnread | Do::CloseRead | Do::OnceEach(..) => return,
            Do::Hang => std::future::pending().await,
        }
    }
}

/// The answer of somebody else, who closes the connection after it.
async fn forward(to: SocketAddr, request: &Seen) -> std::io::Result<Vec<u8>> {
    let mut upstream = TcpStream::connect(to).await?;
    upstream.write_all(request.head.as_bytes()).await?;
    upstream.write_all(&request.body).await?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).await?;
    Ok(answer)
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = until(stream, buffer, |bytes| find(bytes, b"\r\n\r\n")).await? + 4;
    let head = String::from_utf8(buffer.drain(..end).collect()).unwrap();
    let header = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = if header("transfer-encoding").is_some() {
        let end = until(stream, buffer, |bytes| find(bytes, b"0\r\n\r\n")).await? + 5;
        buffer.drain(..end).collect()
    } else {
        let length = header("content-length").map_or(0, |length| length.parse().unwrap());
        until(stream, buffer, |bytes| (bytes.len() >= length).then_some(0)).await?;
        buffer.drain(..length).collect()
    };
    let method = head.split(' ').next().unwrap().to_owned();
    Some(Seen { method, head, body })
}

async fn until(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    found: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    loop {
        if let Some(at) = found(buffer) {
            return Some(at);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
