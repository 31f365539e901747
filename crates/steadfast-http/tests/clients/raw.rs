//! A server that is scripted byte by byte, with a log of the requests that it carried
//! out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub struct Fault {
    pub name: &'static str,
    /// Whether the server carries out the request.
    pub carried_out: bool,
    /// Whether the client can know that it did not.
    pub proves_nothing_happened: bool,
    pub act: Act,
}

#[derive(Clone, Debug)]
pub enum Act {
    /// HTTP/1.1: closes after this many bytes of the request.
    CloseAfterReading(usize),
    /// HTTP/1.1: reads the request, writes these bytes, and closes.
    Write(Vec<u8>),
    /// HTTP/1.1: reads the request, writes these bytes, and resets the connection.
    Reset(Vec<u8>),
    /// HTTP/1.1: reads the request, writes these bytes, and goes on.
    KeepAlive(Vec<u8>),
    /// HTTP/2: sends `RST_STREAM` with this code.
    ResetStream(u32),
    /// HTTP/2: sends the head of a response, then `RST_STREAM` with this code.
    ResetStreamAfterHead(u32),
    /// HTTP/2: sends `GOAWAY` with this code and the id of this stream or of an earlier
    /// one, and closes.
    GoAway { code: u32, includes_this: bool },
    /// HTTP/2: closes.
    Close,
}

pub struct Server {
    pub address: SocketAddr,
    log: Arc<Mutex<usize>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves one fault after the other, then good responses.
    pub async fn start(http2: bool, script: Vec<Fault>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(0));
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let logged = Arc::clone(&log);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, log) = (Arc::clone(&script), Arc::clone(&logged));
                tokio::spawn(async move {
                    // A connection that the client closes ends here.
                    let _ = match http2 {
                        true => serve_http2(stream, script, log).await,
                        false => serve_http1(stream, script, log).await,
                    };
                });
            }
        });
        Self {
            address,
            log,
            accepting,
        }
    }

    pub fn uri(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// The number of requests that were carried out.
    pub fn carried_out(&self) -> usize {
        *self.log.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Script = Arc<Mutex<VecDeque<Fault>>>;
type Log = Arc<Mutex<usize>>;

/// Counts a request before anything is sent back.
fn carry_out(fault: Option<&Fault>, log: &Log) {
    if fault.is_none_or(|fault| fault.carried_out) {
        *log.lock().unwrap() += 1;
    }
}

async fn serve_http1(mut stream: TcpStream, script: Script, log: Log) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        if buffer.is_empty() && stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
        let fault = script.lock().unwrap().pop_front();
        if let Some(Act::CloseAfterReading(bytes)) = fault.as_ref().map(|fault| &fault.act) {
            while buffer.len() < *bytes {
                if stream.read_buf(&mut buffer).await? == 0 {
                    break;
                }
            }
            carry_out(fault.as_ref(), &log);
            return Ok(());
        }
        let end = loop {
            if let Some(end) = end_of_request(&buffer) {
                break end;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        buffer.drain(..end);
        carry_out(fault.as_ref(), &log);
        match fault.map(|fault| fault.act) {
            Some(Act::Write(bytes)) => return stream.write_all(&bytes).await,
            Some(Act::Reset(bytes)) => {
                stream.write_all(&bytes).await?;
                SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO))?;
                return Ok(());
            }
            Some(Act::KeepAlive(bytes)) => stream.write_all(&bytes).await?,
            _ => {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                    .await?
            }
        }
    }
}

fn end_of_request(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head])
        .unwrap()
        .to_ascii_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let end = head + length.map_or(0, |length| length.trim().parse::<usize>().unwrap());
    (bytes.len() >= end).then_some(end)
}

const HEAD: &[u8] = b"\x88\x00\x0ccontent-type\x10application/grpc";
const TRAILERS: &[u8] = b"\x00\x0bgrpc-status\x010";

async fn serve_http2(mut stream: TcpStream, script: Script, log: Log) -> std::io::Result<()> {
    stream.read_exact(&mut [0; 24]).await?;
    stream.write_all(&frame(4, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        stream.read_exact(&mut vec![0; length]).await?;
        match kind {
            4 if flags & 1 == 0 => stream.write_all(&frame(4, 1, 0, &[])).await?,
            // The end of a stream, in headers or in data.
            0 | 1 if flags & 1 == 1 => {
                let fault = script.lock().unwrap().pop_front();
                carry_out(fault.as_ref(), &log);
                match fault.map(|fault| fault.act) {
                    Some(Act::ResetStream(code)) => {
                        stream
                            .write_all(&frame(3, 0, id, &code.to_be_bytes()))
                            .await?;
                    }
                    Some(Act::ResetStreamAfterHead(code)) => {
                        let mut bytes = frame(1, 4, id, HEAD);
                        bytes.extend(frame(3, 0, id, &code.to_be_bytes()));
                        stream.write_all(&bytes).await?;
                    }
                    Some(Act::GoAway {
                        code,
                        includes_this,
                    }) => {
                        let last = if includes_this { id } else { id - 1 };
                        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
                        return stream.write_all(&frame(7, 0, 0, &payload)).await;
                    }
                    Some(_) => return Ok(()),
                    None => {
                        let mut bytes = frame(1, 4, id, HEAD);
                        bytes.extend(frame(0, 0, id, &[0; 5]));
                        bytes.extend(frame(1, 5, id, TRAILERS));
                        stream.write_all(&bytes).await?;
                    }
                }
            }
            _ => {}
        }
    }
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(id.to_be_bytes());
    bytes.extend(payload);
    bytes
}
