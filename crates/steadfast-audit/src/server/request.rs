//! Reads requests, within limits.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// A longer head is invalid.
const LONGEST_HEAD: u64 = 64 << 10;
/// A longer body is not read to its end.
const LONGEST_BODY: u64 = 64 << 20;

/// The head of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RequestStart {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) key: Option<String>,
    pub(super) length: BodyLength,
    /// The client waits for `100 Continue` before it sends the body.
    pub(super) expects_continue: bool,
    /// The client closes the connection after the response.
    pub(super) closes: bool,
}

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BodyLength {
    Bytes(u64),
    Chunks,
}

impl Default for BodyLength {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// Reads a head; returns nothing at the end of the connection.
///
/// # Errors
/// If the connection breaks, or what arrives is not HTTP/1.
pub(super) async fn read_start(
    stream: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<RequestStart>> {
    let mut limited = stream.take(LONGEST_HEAD);
    let mut head = Vec::new();
    loop {
        let begin = head.len();
        if limited.read_until(b'\n', &mut head).await? == 0 {
            return match head.is_empty() {
                true => Ok(None),
                false => Err(invalid("the head of the request is cut or too long")),
            };
        }
        if head[begin..].trim_ascii().is_empty() && begin > 0 {
            return parse(&head).map(Some);
        }
    }
}

/// Parses a head; the end may be missing.
///
/// # Errors
/// If it does not begin with a request line, or a length is not a number.
pub(super) fn parse(head: &[u8]) -> io::Result<RequestStart> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return Err(invalid("the request line has too few words"));
    };
    if !version.starts_with("HTTP/1") {
        return Err(invalid("not HTTP/1"));
    }
    let mut start = RequestStart {
        method: method.to_owned(),
        path: path.to_owned(),
        closes: version == "HTTP/1.0",
        ..RequestStart::default()
    };
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        match &*name.to_ascii_lowercase() {
            // An empty header names no request.
            "idempotency-key" if !value.is_empty() => start.key = Some(value.to_owned()),
            "transfer-encoding" => start.length = BodyLength::Chunks,
            "content-length" => {
                let length = value
                    .parse()
                    .map_err(|_| invalid("invalid Content-Length"))?;
                start.length = BodyLength::Bytes(length);
            }
            "expect" => start.expects_continue = value.eq_ignore_ascii_case("100-continue"),
            "connection" => start.closes = value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    Ok(start)
}

/// Reads a body and returns how long it was. Stops at `most` bytes.
///
/// # Errors
/// If the connection breaks, or the chunks are invalid.
pub(super) async fn read_body(
    stream: &mut (impl AsyncBufRead + Unpin),
    length: BodyLength,
    most: u64,
) -> io::Result<u64> {
    let most = most.min(LONGEST_BODY);
    match length {
        BodyLength::Bytes(length) => skip(stream, length.min(most)).await,
        BodyLength::Chunks => {
            let mut read = 0;
            while read < most {
                let size = chunk_size(stream).await?;
                read += skip(stream, size.min(most)).await?;
                let mut end = Vec::new();
                // The line end of a chunk; trailers are not supported.
                (&mut *stream).take(2).read_until(b'\n', &mut end).await?;
                if size == 0 {
                    break;
                }
            }
            Ok(read)
        }
    }
}

async fn chunk_size(stream: &mut (impl AsyncBufRead + Unpin)) -> io::Result<u64> {
    let mut line = Vec::new();
    stream.take(64).read_until(b'\n', &mut line).await?;
    let text = String::from_utf8_lossy(&line);
    let digits = text.split(';').next().unwrap_or_default().trim();
    u64::from_str_radix(digits, 16).map_err(|_| invalid("invalid size of a chunk"))
}

async fn skip(stream: &mut (impl AsyncBufRead + Unpin), length: u64) -> io::Result<u64> {
    let read = tokio::io::copy_buf(&mut stream.take(length), &mut tokio::io::sink()).await?;
    match read == length {
        true => Ok(read),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_key_is_no_key() {
        let start = parse(b"POST / HTTP/1.1\r\nIdempotency-Key: \r\n\r\n").unwrap();
        assert_eq!(start.key, None);
    }

    #[tokio::test]
    async fn a_request_with_chunks_is_read_to_its_end() {
        let bytes = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nIdempotency-key: k\r\n\r\n\
            3\r\nabc\r\n0\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
        let mut stream = &bytes[..];
        let start = read_start(&mut stream).await.unwrap().unwrap();
        assert_eq!((&*start.method, &*start.path), ("POST", "/a"));
        assert_eq!(start.key.as_deref(), Some("k"));
        let read = read_body(&mut stream, start.length, u64::MAX)
            .await
            .unwrap();
        assert_eq!(read, 3);
        let next = read_start(&mut stream).await.unwrap().unwrap();
        assert_eq!((&*next.method, &*next.path), ("GET", "/b"));
        assert_eq!(read_start(&mut stream).await.unwrap(), None);
    }

    #[tokio::test]
    async fn what_is_not_http_is_an_error() {
        for bytes in [
            &b"\x16\x03\x01\r\n\r\n"[..],
            b"GET /\r\n\r\n",
            b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a",
            b"PRI * HTTP/2.0\r\n\r\n",
        ] {
            assert!(read_start(&mut &*bytes).await.is_err(), "{bytes:?}");
        }
        let long = [&b"GET / HTTP/1.1\r\n"[..], &vec![b'a'; 65 << 10]].concat();
        assert!(read_start(&mut &*long).await.is_err());
    }
}
