//! Checks the host name, the port and TLS.

use std::fmt::from_fn;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rustls::{CertificateError, ClientConfig, Error as TlsError};
use steadfast_os::net::TcpStream;
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Checkup, Finding};
use crate::config_error::ConfigError;
use crate::kv::connection::Io;
use crate::options::{ClusterOptions, TlsOptions};
use crate::tls;
use crate::topology::{Address, write_host};
use crate::world::now;

/// Checks that the hosts have addresses, and shows them. Cancel-safe.
pub(super) async fn name(seeds: &[Address], srv: bool, limit: Duration) -> Finding {
    let mut shown: Vec<String> = Vec::new();
    let mut missing = Vec::new();
    for seed in seeds {
        let host = from_fn(|f| write_host(f, &seed.host, None));
        let lookup = timeout(limit, lookup_host((&*seed.host, seed.port)));
        match lookup.await.unwrap_or_else(|_| Err(no_answer(limit))) {
            Ok(addresses) => {
                let mut found: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
                found.sort();
                found.dedup();
                let literal = seed.host.parse::<IpAddr>().is_ok();
                let found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
                let text = match literal {
                    true => host.to_string(),
                    false => format!("{host} → {}", found.join(", ")),
                };
                // Two ports of one host.
                if !shown.contains(&text) {
                    shown.push(text);
                }
            }
            Err(error) => missing.push(format!("{host}: {error}")),
        }
    }
    if shown.is_empty() {
        let advice = "check the spelling of the name, and whether this machine can look it up";
        return Finding::fails("name", missing.join("; "), advice);
    }
    let by = if srv { " (by DNS SRV)" } else { "" };
    let mut text = format!("{}{by}", shown.join("; "));
    if !missing.is_empty() {
        text.push_str(&format!("; without an address: {}", missing.join("; ")));
    }
    Finding::works("name", text)
}

/// Connects to every host, and returns the connections. It works if one host accepts,
/// because a client needs no more. Cancel-safe: dropping the future closes the sockets.
pub(super) async fn connect(
    seeds: &[Address],
    options: &ClusterOptions,
) -> Result<(Vec<(Address, TcpStream)>, Finding), Finding> {
    let mut sockets = Vec::new();
    let mut accepted = Vec::new();
    let mut failed = Vec::new();
    let mut advice = String::new();
    let dials = seeds.iter().map(|seed| async move {
        let begun = now();
        let dialled = dial(seed, options.connect_timeout).await;
        (seed, dialled, now().saturating_duration_since(begun))
    });
    for (seed, dialled, took) in join_all(dials).await {
        match dialled {
            Ok(socket) => {
                accepted.push(format!("{seed} in {:.1} ms", took.as_secs_f64() * 1e3));
                sockets.push((seed.clone(), socket));
            }
            Err(error) => {
                failed.push(format!("{seed}: {error}"));
                advice = refused(&error);
            }
        }
    }
    if sockets.is_empty() {
        return Err(Finding::fails("connect", failed.join("; "), advice));
    }
    let mut text = accepted.join("; ");
    if !failed.is_empty() {
        text.push_str(&format!("; not {}", failed.join("; not ")));
    }
    Ok((sockets, Finding::works("connect", text)))
}

/// Connects to a host. Cancel-safe: dropping the future closes the socket.
pub(super) async fn dial(seed: &Address, limit: Duration) -> io::Result<TcpStream> {
    match timeout(limit, TcpStream::connect(&seed.host, seed.port)).await {
        Ok(connected) => connected,
        Err(_) => Err(no_answer(limit)),
    }
}

fn no_answer(limit: Duration) -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no response within {limit:?}"),
    )
}

fn refused(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "nothing listens there: is the server running, and is that its key-value port? \
             Servers have 11210, and 11207 for TLS"
        }
        io::ErrorKind::TimedOut => {
            "the host is down, or a firewall drops what is sent to that port"
        }
        _ => "check that the host can be reached from here",
    }
    .to_owned()
}

/// Checks TLS, if the address asks for it. Returns no socket if it fails.
///
/// Cancel-safe: dropping the future closes the socket.
pub(super) async fn secure(
    checkup: &Checkup,
    seed: &Address,
    socket: TcpStream,
) -> Result<(Finding, Option<Io>), ConfigError> {
    if !checkup.string.is_tls() {
        let why = "not asked for; documents are sent unencrypted (couchbases:// asks for TLS)";
        return Ok((Finding::not_tried("TLS", why), Some(Io::Left(socket))));
    }
    let limit = checkup.options.connect_timeout;
    let config = tls::client_config(&checkup.options.tls, &checkup.credentials)?;
    match handshake(config, seed, socket, limit).await {
        Ok(stream) => {
            let (_, session) = stream.get_ref();
            let version = match session.protocol_version() {
                Some(rustls::ProtocolVersion::TLSv1_3) => "1.3",
                _ => "1.2",
            };
            let verified = match checkup.options.tls.dangerous_skip_verification {
                true => "; the certificate is not verified",
                false => "",
            };
            let mut finding = Finding::works("TLS", format!("{version}{verified}"));
            finding.certificate = shown(&stream);
            Ok((finding, Some(Io::Right(Box::new(stream)))))
        }
        Err(error) => {
            let mut finding = Finding::fails("TLS", error.to_string(), untrusted(&error));
            finding.certificate = look(checkup, seed).await;
            Ok((finding, None))
        }
    }
}

/// Makes a TLS handshake. Cancel-safe: dropping the future closes the socket.
async fn handshake(
    config: Arc<ClientConfig>,
    seed: &Address,
    socket: TcpStream,
    limit: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    let name = tls::server_name(&seed.host).map_err(io::Error::other)?;
    match timeout(limit, TlsConnector::from(config).connect(name, socket)).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the server does not answer the handshake",
        )),
    }
}

/// Reads the certificate of an untrusted server, to see who issued it. Sends only
/// the handshake.
///
/// Cancel-safe: dropping the future closes the socket.
async fn look(checkup: &Checkup, seed: &Address) -> Option<Vec<u8>> {
    let limit = checkup.options.connect_timeout;
    let options = TlsOptions::new().dangerous_skip_verification(true);
    let config = tls::client_config(&options, &checkup.credentials).ok()?;
    let socket = dial(seed, limit).await.ok()?;
    let stream = handshake(config, seed, socket, limit).await.ok()?;
    shown(&stream)
}

fn shown(stream: &TlsStream<TcpStream>) -> Option<Vec<u8>> {
    let (_, session) = stream.get_ref();
    Some(session.peer_certificates()?.first()?.to_vec())
}

fn untrusted(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    match tls {
        Some(TlsError::InvalidCertificate(certificate)) => match certificate {
            // The signature is that of another authority which has the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "trust the authority that issued it: name its certificate (PEM) with \
                 trust_certificate, or --ca on the command line"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "connect by a name that the certificate is for"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server needs a new certificate; is the clock of this machine right?"
            }
            _ => "the server's certificate cannot be used; ask who runs it",
        },
        Some(TlsError::InvalidMessage(_)) => {
            "what listens there does not speak TLS: TLS has port 11207 of its own, \
             couchbase:// goes without"
        }
        Some(TlsError::AlertReceived(_)) => {
            "the server does not want this client: does it ask for a client certificate?"
        }
        _ => "is that the port for TLS? Servers have 11207",
    }
    .to_owned()
}
