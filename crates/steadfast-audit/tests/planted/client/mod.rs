//! A small HTTP client with a retry policy, as a program: one request, by the environment.

mod http2;

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A server that asks for more patience than this gets none.
const PATIENCE: Duration = Duration::from_secs(6);

/// What a client does about failures.
pub(crate) struct Policy {
    /// The method, if the client has one of its own.
    pub(crate) method: Option<&'static str>,
    /// Whether it speaks HTTP/2.
    pub(crate) http2: bool,
    /// How long it waits for a response.
    pub(crate) timeout: Duration,
    /// How many attempts it makes. Those that meet a refused connection do not count.
    pub(crate) attempts: u32,
    /// Whether it sends a request again.
    pub(crate) retries: fn(&Sent, &Failed) -> bool,
    /// How long it waits, by the attempts made and the jitter; nothing if it gives up.
    pub(crate) wait: fn(u32, &Failed, f64) -> Option<Duration>,
}

/// A request.
pub(crate) struct Sent {
    pub(crate) is_idempotent: bool,
}

/// How an attempt failed.
pub(crate) enum Failed {
    Refused,
    NotSent,
    NoResponse,
    Status(u16, Option<Duration>),
}

impl Default for Policy {
    /// A good client.
    fn default() -> Self {
        Self {
            method: None,
            http2: false,
            // Longer than any response takes, on the slowest machine.
            timeout: Duration::from_secs(30),
            attempts: 5,
            retries: |sent, failed| match failed {
                Failed::Refused | Failed::NotSent | Failed::Status(425 | 429, _) => true,
                Failed::NoResponse => sent.is_idempotent,
                Failed::Status(status, _) => {
                    sent.is_idempotent && (*status == 408 || *status >= 500) && *status != 501
                }
            },
            wait: |attempt, failed, jitter| match failed {
                Failed::Status(_, Some(asked)) if *asked > PATIENCE => None,
                Failed::Status(_, Some(asked)) => Some(backoff(attempt, jitter).max(*asked)),
                _ => Some(backoff(attempt, jitter)),
            },
        }
    }
}

/// Exponential backoff, with jitter.
pub(crate) fn backoff(attempt: u32, jitter: f64) -> Duration {
    Duration::from_millis(60 << attempt).mul_f64(jitter)
}

/// Sends the request of the environment.
pub(crate) fn run(policy: &Policy) {
    let url = std::env::var("AUDIT_URL").unwrap();
    let method = std::env::var("AUDIT_METHOD").unwrap();
    let method = policy.method.unwrap_or(&method);
    let key = std::env::var("AUDIT_KEY").ok();
    let body = match method {
        "GET" => Vec::new(),
        _ => std::fs::read(std::env::var("AUDIT_FILE").unwrap()).unwrap(),
    };
    let (scheme, rest) = url.split_once("://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let number: u32 = path.rsplit('/').next().unwrap().parse().unwrap();
    // The same in every run, and another one for each client of a fleet.
    let jitter = 0.5 + f64::from(number) / 8.0;
    let key = key.filter(|key| !key.is_empty() && policy.method.is_none());
    let sent = Sent {
        is_idempotent: method != "POST" || key.is_some(),
    };
    let header = key
        .as_ref()
        .map(|key| format!("Idempotency-Key: {key}\r\n"));
    let header = header.unwrap_or_default();
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\n{header}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut made = 0;
    loop {
        let made_one = match policy.http2 {
            true => http2::attempt(policy.timeout, &url, method, key.as_deref(), &body),
            false => attempt(policy.timeout, scheme, address, &head, &body),
        };
        let Err(failed) = made_one else {
            return;
        };
        made += u32::from(!matches!(failed, Failed::Refused));
        let wait = (policy.wait)(made, &failed, jitter);
        let wait = wait.filter(|_| made < policy.attempts && (policy.retries)(&sent, &failed));
        let Some(wait) = wait else {
            std::process::exit(9)
        };
        std::thread::sleep(wait);
    }
}

/// A stream in both directions.
trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// Returns the settings for TLS, which trust the certificate of the audit.
fn trust() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(std::env::var("AUDIT_CA").unwrap()).unwrap();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn attempt(
    timeout: Duration,
    scheme: &str,
    address: &str,
    head: &str,
    body: &[u8],
) -> Result<(), Failed> {
    let tcp = TcpStream::connect(address).map_err(|_| Failed::Refused)?;
    tcp.set_read_timeout(Some(timeout)).unwrap();
    let mut stream: Box<dyn Duplex> = Box::new(tcp.try_clone().unwrap());
    if scheme == "https" {
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let tls = ClientConnection::new(Arc::new(trust()), name).unwrap();
        let mut tls = StreamOwned::new(tls, tcp);
        let shaken = tls.conn.complete_io(&mut tls.sock);
        shaken.map_err(|_| Failed::NotSent)?;
        stream = Box::new(tls);
    }
    // An early response may be there although not all was written.
    let written = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    match read(&mut stream) {
        Ok(response) if written.is_ok() || !response.is_empty() => parse(&response),
        _ => Err(Failed::NoResponse),
    }
}

/// Reads a response to the end that its length gives.
fn read(stream: &mut Box<dyn Duplex>) -> io::Result<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer)?;
        text += &String::from_utf8_lossy(&buffer[..length]);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = value(head, "content-length").unwrap_or_default();
            body.len() >= length.parse().unwrap_or(0)
        });
        match length {
            _ if whole => return Ok(text),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ => {}
        }
    }
}

fn parse(response: &str) -> Result<(), Failed> {
    let status = response
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    match status {
        Some(200) => Ok(()),
        Some(status) => Err(Failed::Status(status, retry_after(response))),
        None => Err(Failed::NoResponse),
    }
}

/// Returns the longest delay that a response asks for. A date is compared with the response's.
fn retry_after(response: &str) -> Option<Duration> {
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let now = value(response, "date")
        .and_then(date)
        .unwrap_or_else(SystemTime::now);
    let delay = |text: &str| match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => date(text)?.duration_since(now).ok(),
    };
    let lines = response
        .lines()
        .filter_map(|line| line.strip_prefix("retry-after: "));
    lines.filter_map(delay).max()
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
