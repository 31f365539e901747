//! HTTP/2 for the planted clients.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Failed, retry_after, trust};

/// Makes one attempt, on its own connection.
pub(super) fn attempt(
    limit: Duration,
    url: &str,
    method: &str,
    key: Option<&str>,
    body: &[u8],
) -> Result<(), Failed> {
    let mut request = http::Request::builder().method(method).uri(url);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(()).unwrap();
    let body = Bytes::copy_from_slice(body);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let address = request.uri().authority().unwrap().as_str();
        let tcp = TcpStream::connect(address).await;
        let tcp = tcp.map_err(|_| Failed::Refused)?;
        if request.uri().scheme_str() != Some("https") {
            return exchange(limit, tcp, request, body).await;
        }
        let mut trust = trust();
        trust.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let tls = TlsConnector::from(Arc::new(trust)).connect(name, tcp).await;
        let tls = tls.map_err(|_| Failed::NotSent)?;
        exchange(limit, tls, request, body).await
    })
}

async fn exchange(
    limit: Duration,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: http::Request<()>,
    body: Bytes,
) -> Result<(), Failed> {
    let (mut client, connection) = h2::client::handshake(stream).await.map_err(failed)?;
    tokio::spawn(connection);
    let (response, mut upload) = client
        .send_request(request, body.is_empty())
        .map_err(failed)?;
    if !body.is_empty() {
        // A stream that is refused takes no body; the response says so.
        let _ = upload.send_data(body, true);
    }
    let response = within(limit, response).await?.map_err(failed)?;
    let (head, mut body) = response.into_parts();
    while let Some(data) = within(limit, body.data()).await? {
        let data = data.map_err(failed)?;
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    match head.status.as_u16() {
        200 => Ok(()),
        status => {
            let value = |name| {
                head.headers
                    .get(name)
                    .map(|value: &http::HeaderValue| value.to_str())
            };
            let mut text = String::new();
            for after in head.headers.get_all("retry-after") {
                text += &format!("retry-after: {}\r\n", after.to_str().unwrap());
            }
            if let Some(Ok(date)) = value("date") {
                text += &format!("date: {date}\r\n");
            }
            Err(Failed::Status(status, retry_after(&text)))
        }
    }
}

/// What was refused was not processed (RFC 9113, section 8.7).
fn failed(error: h2::Error) -> Failed {
    let refused = error.reason() == Some(Reason::REFUSED_STREAM) || error.is_go_away();
    match refused {
        true => Failed::NotSent,
        false => Failed::NoResponse,
    }
}

async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Result<T, Failed> {
    timeout(limit, future).await.map_err(|_| Failed::NoResponse)
}
