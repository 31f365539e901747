//! A small HTTP client with a retry policy, as a program: one request, by the environment.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime};

/// How long the client waits for a response.
const TIMEOUT: Duration = Duration::from_millis(1200);
/// A server that asks for more patience than this gets none.
const PATIENCE: Duration = Duration::from_secs(6);

/// What a client does about failures.
pub(crate) struct Policy {
    /// The method, if the client has one of its own.
    pub(crate) method: Option<&'static str>,
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
    NotSent,
    NoResponse,
    Status(u16, Option<Duration>),
}

impl Default for Policy {
    /// A good client.
    fn default() -> Self {
        Self {
            method: None,
            attempts: 4,
            retries: |sent, failed| match failed {
                Failed::NotSent | Failed::Status(425 | 429, _) => true,
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
    Duration::from_millis(150 << attempt).mul_f64(jitter)
}

/// Sends the request of the environment.
pub(crate) fn run(policy: &Policy) {
    let url = std::env::var("AUDIT_URL").unwrap();
    let method = std::env::var("AUDIT_METHOD").unwrap();
    let method = policy.method.unwrap_or(&method);
    let key = std::env::var("AUDIT_KEY").unwrap();
    let body = match method {
        "GET" => Vec::new(),
        _ => std::fs::read(std::env::var("AUDIT_FILE").unwrap()).unwrap(),
    };
    let (address, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let number: u32 = path.rsplit('/').next().unwrap().parse().unwrap();
    // The same in every run, and another one for each client of a fleet.
    let jitter = 0.5 + f64::from(number) / 8.0;
    let sent = Sent {
        is_idempotent: method != "POST" || !key.is_empty() && policy.method.is_none(),
    };
    let key = match key.as_str() {
        "" => String::new(),
        key => format!("Idempotency-Key: {key}\r\n"),
    };
    let key = if policy.method.is_some() {
        String::new()
    } else {
        key
    };
    let head = format!(
        "{method} /{path} HTTP/1.1\r\nHost: {address}\r\n{key}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut made = 0;
    loop {
        let Err(failed) = attempt(address, &head, &body) else {
            return;
        };
        made += 1;
        let wait = (policy.wait)(made, &failed, jitter);
        let wait = wait.filter(|_| made < policy.attempts && (policy.retries)(&sent, &failed));
        let Some(wait) = wait else {
            std::process::exit(9)
        };
        std::thread::sleep(wait);
    }
}

fn attempt(address: &str, head: &str, body: &[u8]) -> Result<(), Failed> {
    let mut stream = TcpStream::connect(address).map_err(|_| Failed::NotSent)?;
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
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
fn read(stream: &mut TcpStream) -> io::Result<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let length = stream.read(&mut buffer)?;
        text += &String::from_utf8_lossy(&buffer[..length]);
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
            let length = value(head, "Content-Length").unwrap_or_default();
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
    let now = value(response, "Date")
        .and_then(date)
        .unwrap_or_else(SystemTime::now);
    let delay = |text: &str| match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => date(text)?.duration_since(now).ok(),
    };
    let lines = response
        .lines()
        .filter_map(|line| line.strip_prefix("Retry-After: "));
    lines.filter_map(delay).max()
}

fn value<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
