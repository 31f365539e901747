//! Checks the credentials and the bucket.

use steadfast_wire::config::ClusterConfig;
use steadfast_wire::hello::ClientIdentity;
use tokio::time::timeout;

use super::reach::{dial, secure};
use super::{Checkup, Finding};
use crate::config_error::ConfigError;
use crate::credentials::CredentialKind;
use crate::kv::connection::Io;
use crate::kv::handshake::{HandshakeParams, Reached, Rejected, bootstrap, features};
use crate::reason::{
    AUTHENTICATION_ERROR, BUCKET_ACCESS_ERROR, NODE_NOT_AVAILABLE, SERVER_NOT_PROVEN, TLS_ERROR,
};
use crate::sasl::Channel;
use crate::topology::{Address, parse_config};

/// Checks the credentials. Cancel-safe: dropping the future closes the socket.
pub(super) async fn authenticate(checkup: &Checkup, seed: &Address, io: Io) -> Finding {
    let who = match checkup.credentials.user() {
        Some(user) => format!("as user \"{user}\""),
        None => "without a user's name".to_owned(),
    };
    match enter(checkup, seed, io, None).await {
        Ok(config) => {
            let nodes = config.as_ref().map(nodes).unwrap_or_default();
            Finding::works("authenticate", format!("{who}{nodes}"))
        }
        Err(rejected) => {
            let advice = if rejected.reason == &SERVER_NOT_PROVEN {
                "do not use this server: find out which server has that address, and use TLS"
            } else if rejected.reason == &AUTHENTICATION_ERROR {
                "check the password, or ask an administrator whether the user exists"
            } else {
                not_entered(checkup, &rejected)
            };
            Finding::fails("authenticate", rejected.note, advice)
        }
    }
}

/// Returns what to do about a server that ends the connection before it knows the user.
fn not_entered(checkup: &Checkup, rejected: &Rejected) -> &'static str {
    let certificate = matches!(checkup.credentials.kind(), CredentialKind::Certificate(_));
    let is_tls = checkup.string.is_tls();
    if rejected.reason == &TLS_ERROR && certificate {
        "the server does not take the client's certificate: ask who issued it"
    } else if rejected.reason == &TLS_ERROR {
        "the server probably demands a client certificate, and none was offered: use one"
    } else if certificate && is_tls && rejected.reached == Reached::Nothing {
        "the client's certificate probably maps to no user: check the server's settings for \
         client certificates, and that the user exists"
    } else if is_tls {
        "is that the key-value port of a Couchbase server? A server with too many connections \
         (max_connections) closes new ones, too"
    } else {
        "is that the key-value port of a Couchbase server, and does it want TLS \
         (couchbases://)? A server with too many connections (max_connections) closes new \
         ones, too"
    }
}

/// Checks that the bucket opens. Cancel-safe: dropping the future closes the socket.
pub(super) async fn bucket(checkup: &Checkup, seed: &Address) -> Result<Finding, ConfigError> {
    let Some(bucket) = checkup.string.bucket() else {
        return Ok(Finding::not_tried("bucket", "none is named in the address"));
    };
    let lost = |note: String| Finding::fails("bucket", note, "the server went away; try again");
    let socket = match dial(seed, checkup.options.connect_timeout).await {
        Ok(socket) => socket,
        Err(error) => return Ok(lost(error.to_string())),
    };
    let (finding, io) = secure(checkup, seed, socket).await?;
    let Some(io) = io else {
        return Ok(lost(finding.text));
    };
    Ok(match enter(checkup, seed, io, Some(bucket)).await {
        Ok(config) => {
            let size = config.as_ref().and_then(size).unwrap_or_default();
            Finding::works("bucket", format!("{bucket}{size}"))
        }
        Err(rejected) => {
            let advice = if rejected.reason == &BUCKET_ACCESS_ERROR && rejected.unsupported {
                "use an ephemeral bucket instead of a memcached one"
            } else if rejected.reason == &BUCKET_ACCESS_ERROR {
                "create the bucket, or give the user rights on it; the server says the same of both"
            } else if rejected.reason == &NODE_NOT_AVAILABLE {
                "check the spelling of the bucket's name; if the node has just started, wait until its \
                 buckets are ready"
            } else {
                "look at the server's log"
            };
            Finding::fails("bucket", rejected.note, advice)
        }
    })
}

/// Does the handshake of a client on this socket, and returns the config.
///
/// Cancel-safe: dropping the future closes the socket.
async fn enter(
    checkup: &Checkup,
    seed: &Address,
    mut io: Io,
    bucket: Option<&str>,
) -> Result<Option<ClusterConfig>, Rejected> {
    let options = &checkup.options;
    let agent = concat!("steadfast-checkup/", env!("CARGO_PKG_VERSION"));
    let params = HandshakeParams {
        credentials: &checkup.credentials,
        channel: Channel::new(checkup.string.is_tls(), options),
        bucket,
        identity: ClientIdentity::new(agent, fastrand::u64(..), fastrand::u64(..)),
        features: features(&options.clone().config_push(false)),
        hello_after_authentication: options.hello_after_authentication,
        host: &seed.host,
    };
    let limit = options.connect_timeout;
    match timeout(limit, bootstrap(&mut io, &params)).await {
        Ok(welcome) => {
            let config = welcome?.config;
            config
                .map(|frame| parse_config(&frame, &seed.host))
                .transpose()
        }
        Err(_) => Err(Rejected::lost(format!(
            "{seed} accepts the connection and stays silent: no response within {limit:?}"
        ))),
    }
}

fn nodes(config: &ClusterConfig) -> String {
    match config.nodes.len() {
        1 => "; a cluster of one node".to_owned(),
        nodes => format!("; a cluster of {nodes} nodes"),
    }
}

fn size(config: &ClusterConfig) -> Option<String> {
    let nodes = config.bucket_nodes().len();
    config.bucket.as_ref()?;
    Some(match nodes {
        1 => " on one node".to_owned(),
        nodes => format!(" on {nodes} nodes"),
    })
}
