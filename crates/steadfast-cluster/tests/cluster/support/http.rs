//! A minimal HTTP client that shares no code with the server.

use base64::Engine;
use serde_json::Value;
use steadfast_cluster::{Service, TestCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What came back, as far as it came.
#[derive(Debug)]
pub struct HttpReply {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// Whether the body came to its end.
    pub whole: bool,
}

impl HttpReply {
    pub fn json(&self) -> Value {
        assert!(self.whole, "the answer was cut: {}", self.body);
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The code of the first error.
    pub fn code(&self) -> u64 {
        let code = self.json()["errors"][0]["code"].as_u64();
        code.unwrap_or_else(|| panic!("no code: {}", self.body))
    }

    pub fn results(&self) -> Value {
        let json = self.json();
        assert_eq!(json["status"], "success", "{}", self.body);
        json["results"].clone()
    }
}

/// A request to write by hand.
pub struct Call<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub user: Option<(&'a str, &'a str)>,
    pub content_type: &'a str,
    pub host: &'a str,
    pub body: String,
}

impl<'a> Call<'a> {
    pub fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            user: Some((TestCluster::USER, TestCluster::PASSWORD)),
            content_type: "application/json",
            host: "x",
            body: String::new(),
        }
    }

    pub fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    pub fn body(self, body: impl Into<String>) -> Self {
        Self {
            body: body.into(),
            ..self
        }
    }

    pub fn form(self, body: &str) -> Self {
        Self {
            content_type: "application/x-www-form-urlencoded",
            ..self.body(body)
        }
    }

    pub fn host(self, host: &'a str) -> Self {
        Self { host, ..self }
    }

    pub fn by(self, user: Option<(&'a str, &'a str)>) -> Self {
        Self { user, ..self }
    }

    pub fn text(&self) -> String {
        let authorization = self.user.map_or_else(String::new, |(name, password)| {
            let pair = format!("{name}:{password}");
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            format!("authorization: Basic {encoded}\r\n")
        });
        format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{authorization}content-type: {}\r\n\
             content-length: {}\r\n\r\n{}",
            self.method,
            self.path,
            self.host,
            self.content_type,
            self.body.len(),
            self.body
        )
    }

    /// Sends it to a service of the first node; nothing if the connection ends without a head.
    pub async fn try_send(&self, cluster: &TestCluster, service: Service) -> Option<HttpReply> {
        let mut stream = self.start(cluster, service).await;
        let mut bytes = Vec::new();
        // However it ends: what was read before is there.
        let _ = stream.read_to_end(&mut bytes).await;
        parse(&bytes)
    }

    pub async fn send(&self, cluster: &TestCluster, service: Service) -> HttpReply {
        let answer = self.try_send(cluster, service).await;
        answer.expect("the connection ended without an answer")
    }

    /// Sends it to this address.
    pub async fn send_to(&self, address: &str) -> HttpReply {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(self.text().as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes).await;
        parse(&bytes).expect("the connection ended without an answer")
    }

    /// Sends it and leaves the reading to the caller.
    pub async fn start(&self, cluster: &TestCluster, service: Service) -> TcpStream {
        let mut stream = TcpStream::connect(&cluster.addresses(service)[0])
            .await
            .unwrap();
        stream.write_all(self.text().as_bytes()).await.unwrap();
        stream
    }
}

/// Reads an answer from bytes that are all there ever will be.
pub fn parse(bytes: &[u8]) -> Option<HttpReply> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let rest = &bytes[end + 4..];
    let lower = head.to_ascii_lowercase();
    let (body, whole) = if lower.contains("transfer-encoding: chunked") {
        unchunk(rest)
    } else {
        let length = lower
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        (rest.to_vec(), rest.len() == length)
    };
    Some(HttpReply {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: lower,
        body: String::from_utf8_lossy(&body).into_owned(),
        whole,
    })
}

fn unchunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        rest = &rest[end + 2..];
        if size == 0 {
            return (body, true);
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
    (body, false)
}
