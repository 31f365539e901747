//! Host and port of a service.

use std::fmt;
use std::sync::Arc;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

impl Address {
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }
}

/// Writes `host:port`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_host(f, &self.host, Some(self.port))
    }
}

/// Writes a host and perhaps a port, with brackets around an IPv6 address.
pub(crate) fn write_host(f: &mut fmt::Formatter<'_>, host: &str, port: Option<u16>) -> fmt::Result {
    match host.contains(':') {
        true => write!(f, "[{host}]")?,
        false => f.write_str(host)?,
    }
    match port {
        Some(port) => write!(f, ":{port}"),
        None => Ok(()),
    }
}

/// Returns the host of `host:port`.
pub(crate) fn host_part(peer: &str) -> &str {
    let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
