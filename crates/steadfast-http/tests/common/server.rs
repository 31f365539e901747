//! A scripted HTTP server on a real socket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The action of the server for one request. After the script it sends 200.
#[derive(Clone, Debug)]
pub enum ServerAction {
    /// Reads the request and sends this response.
    Answer(u16, Vec<(&'static str, String)>),
    /// Closes the connection at the first byte.
    CloseUnread,
    /// Reads the whole request, then closes the connection.
    CloseRead,
    /// Reads the request, sends a part of a response, and closes the connection.
    CloseAnswering,
    /// Reads the request and sends nothing.
    Hang,
    /// Forwards the request to another server, and then closes the connection.
    Forward(SocketAddr),
    /// From here on, does the first for a new request, and the second for one with
    /// the same path and body.
    OnceEach(Box<ServerAction>, Box<ServerAction>),
}

/// A request that the server read.
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
    script: Mutex<VecDeque<ServerAction>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

pub fn answer(status: u16) -> ServerAction {
    ServerAction::Answer(status, Vec::new())
}

pub fn with(status: u16, header: &'static str, value: impl Into<String>) -> ServerAction {
    ServerAction::Answer(status, vec![(header, value.into())])
}

/// From here on, does this for a new request, and sends 200 for a repeated one.
pub fn once_each(act: ServerAction) -> ServerAction {
    ServerAction::OnceEach(Box::new(act), Box::new(answer(200)))
}

impl Server {
    pub async fn start(script: impl IntoIterator<Item = ServerAction>) -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), script).await
    }

    pub async fn start_at(
        address: SocketAddr,
        script: impl IntoIterator<Item = ServerAction>,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        Self::start_script_on(listener, script)
    }

    /// Starts on a socket that listens already, without a script.
    pub fn start_on(listener: TcpListener) -> Self {
        Self::start_script_on(listener, [])
    }

    fn start_script_on(
        listener: TcpListener,
        script: impl IntoIterator<Item = ServerAction>,
    ) -> Self {
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

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Stops, closes all connections, and returns the requests that it read.
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

/// An address without a listener, reserved by the returned socket.
pub fn closed_port() -> (tokio::net::TcpSocket, String) {
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
                Some(last @ ServerAction::OnceEach(..)) => last.clone(),
                Some(_) | None => script.pop_front().unwrap_or_else(|| answer(200)),
            }
        };
        if matches!(act, ServerAction::CloseUnread) {
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
            ServerAction::OnceEach(_, then) if known => *then,
            ServerAction::OnceEach(first, _) => *first,
            act => act,
        };
        match act {
            ServerAction::Answer(status, headers) => {
                let headers: String = headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {value}\r\n"))
                    .collect();
                let head = format!("HTTP/1.1 {status} x\r\n{headers}content-length: 2\r\n\r\n{{}}");
                if stream.write_all(head.as_bytes()).await.is_err() {
                    return;
                }
            }
            ServerAction::Forward(to) => {
                let answer = forward(to, &request).await.unwrap();
                let _ = stream.write_all(&answer).await;
                return;
            }
            ServerAction::CloseAnswering => {
                let part = b"HTTP/1.1 200 x\r\ncontent-length: 1000\r\n\r\nnot all of it";
                let _ = stream.write_all(part).await;
                return;
            }
            ServerAction::CloseUnread | ServerAction::CloseRead | ServerAction::OnceEach(..) => {
                return;
            }
            ServerAction::Hang => std::future::pending().await,
        }
    }
}

/// Returns the response of another server, which then closes the connection.
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
