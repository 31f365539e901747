//! Opens connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use steadfast_os::net::TcpStream;
use steadfast_wire::config::ClusterConfig;
use steadfast_wire::hello::ClientIdentity;
use tokio::time::Instant;

use super::{Address, is_terminal, parse_config};
use crate::client::Core;
use crate::hedge::dial_hedged;
use crate::kv::connection::{Connection, ConnectionEnds, ConnectionLimits, Io};
use crate::kv::handshake::{HandshakeParams, Reached, Rejected, bootstrap, features};
use crate::sasl::Channel;
use crate::tls::server_name;

/// A dial that takes longer is slow, also if the node responds at last.
const SLOW: Duration = Duration::from_secs(2);

/// A connection whose task does not run yet.
pub(crate) struct Opened {
    pub(crate) connection: Arc<Connection>,
    pub(crate) io: Io,
    pub(crate) received: BytesMut,
    pub(crate) config: Option<ClusterConfig>,
}

/// Connects, authenticates and opens the bucket. The connection carries at most `in_flight`
/// operations at a time.
///
/// Cancel-safe: dropping the future closes the socket.
pub(crate) async fn dial(
    core: &Core,
    address: &Address,
    bucket: Option<&str>,
    in_flight: usize,
) -> Result<Opened, Rejected> {
    let limit = core.options.connect_timeout;
    let renewals = core.renewals();
    let begun = Instant::now();
    let dialled = dial_hedged(
        limit,
        || connect(address),
        |socket| open(core, address, bucket, in_flight, socket),
    )
    .await;
    let dialled = dialled.map(|opened| {
        let is_slow = begun.elapsed() >= SLOW;
        opened.map_err(|rejected| match is_slow {
            true => rejected.costly(),
            false => rejected,
        })
    });
    match dialled {
        // A rejection of credentials that were replaced meanwhile does not concern
        // the new ones.
        Some(Err(rejected)) if renewals.has_changed().unwrap_or(false) => {
            Err(Rejected::lost(rejected.note))
        }
        Some(opened) => opened,
        None => Err(Rejected::lost(format!("no connection within {limit:?}"))),
    }
}

/// Cancel-safe: dropping the future closes the socket.
async fn connect(address: &Address) -> Result<TcpStream, Rejected> {
    let connected = TcpStream::connect(&address.host, address.port).await;
    let socket = connected.map_err(|error| not_connected(&error))?;
    let prepared = socket.set_nodelay(true);
    prepared.map_err(|error| Rejected::lost(error.to_string()))?;
    Ok(socket)
}

/// Cancel-safe: dropping the future closes the socket.
async fn open(
    core: &Core,
    address: &Address,
    bucket: Option<&str>,
    in_flight: usize,
    socket: TcpStream,
) -> Result<Opened, Rejected> {
    let local = socket.local_addr().map(|local| local.to_string());
    let remote = socket.peer_addr();
    let mut io = match &core.tls {
        None => Io::Left(socket),
        Some(tls) => {
            let name = server_name(&address.host).map_err(|error| Rejected::tls(&error))?;
            let tls = tls.load().connect(name, socket).await;
            Io::Right(Box::new(tls.map_err(Rejected::io)?))
        }
    };
    let credentials = core.credentials();
    let options = &core.options;
    let identity = ClientIdentity::new(&core.agent, core.client_id, fastrand::u64(..));
    let ends = ConnectionEnds {
        peer: address.to_string().into(),
        local: local.unwrap_or_default().into(),
        remote,
        id: identity.connection.as_str().into(),
    };
    let params = HandshakeParams {
        credentials: &credentials,
        channel: Channel::new(core.tls.is_some(), options),
        bucket,
        identity,
        features: features(options),
        hello_after_authentication: options.hello_after_authentication,
        host: &address.host,
    };
    let welcome = bootstrap(&mut io, &params).await?;
    let config = match &welcome.config {
        Some(frame) => {
            let config = parse_config(frame, &address.host);
            Some(
                config.map_err(|rejected| match is_terminal(rejected.reason) {
                    true => rejected.after(Reached::Authentication),
                    false => rejected.after(Reached::Bucket),
                })?,
            )
        }
        None => None,
    };
    let limits = ConnectionLimits {
        in_flight,
        probe_timeout: options.probe_timeout,
        ..ConnectionLimits::default()
    };
    let connection = Connection::new(ends, welcome.features, welcome.error_map, limits);
    Ok(Opened {
        connection,
        io,
        received: welcome.received,
        config,
    })
}

/// The socket did not connect.
fn not_connected(error: &io::Error) -> Rejected {
    match error.kind() {
        // The address exists, but the connection was not taken in time, or was taken back.
        io::ErrorKind::TimedOut | io::ErrorKind::ConnectionReset => {
            Rejected::lost(error.to_string())
        }
        _ => Rejected::refused(error.to_string()),
    }
}
