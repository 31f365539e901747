//! Distinguishes TLS failures from lost connections.

use std::error::Error as StdError;
use std::io;

/// Returns whether TLS caused an I/O error: a certificate that is not trusted,
/// an alert of the peer, bytes that are no TLS (RFC 0049 revision 16,
/// `TLS_ERROR`).
///
/// A peer that hangs up during the handshake is not: that is what one does that
/// is just restarting, and trying again will help. Since TLS 1.3 a server refuses
/// a client's certificate only after the client's side of the handshake is done,
/// so the alert is an error of the first read (D20); ask about errors until the
/// first answer came.
pub(crate) fn is_tls_failure(error: &io::Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(inner) = cause {
        if inner.is::<rustls::Error>() {
            return true;
        }
        cause = match inner
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            // An I/O error shows its own cause's cause as its source.
            Some(wrapped) => Some(wrapped as _),
            None => inner.source(),
        };
    }
    false
}
