//! Escapes characters that SDKs leave raw in the URI of a view, such as `?key="a"`. Real
//! servers take them, the HTTP library rejects them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// How many bytes are read at a time.
const CHUNK: usize = 4096;
/// The length of an escaped character.
const ESCAPED: usize = 3;

/// The reading half of a connection.
pub(super) struct LenientReader<R> {
    reader: R,
    /// Whether the bytes to come belong to the first line of a request.
    in_request_line: bool,
}

impl<R> LenientReader<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self {
            reader,
            in_request_line: false,
        }
    }

    fn escape(&mut self, read: &[u8], buffer: &mut ReadBuf<'_>) {
        // Clients wait for a response before they send the next request.
        self.in_request_line |= read.starts_with(b"GET ") || read.starts_with(b"POST ");
        for byte in read {
            self.in_request_line &= *byte != b'\n';
            match byte {
                b'"' if self.in_request_line => buffer.put_slice(b"%22"),
                b'<' if self.in_request_line => buffer.put_slice(b"%3C"),
                b'>' if self.in_request_line => buffer.put_slice(b"%3E"),
                _ => buffer.put_slice(&[*byte]),
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LenientReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = CHUNK.min(buffer.remaining() / ESCAPED);
        if most == 0 {
            return Pin::new(&mut self.reader).poll_read(cx, buffer);
        }
        let mut chunk = [0; CHUNK];
        let mut read = ReadBuf::new(&mut chunk[..most]);
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut read))?;
        self.escape(read.filled(), buffer);
        Poll::Ready(Ok(()))
    }
}
