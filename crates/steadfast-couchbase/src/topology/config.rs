//! Reads cluster configs from responses and notifications.

use steadfast_wire::config::ClusterConfig;
use steadfast_wire::{DecodeError, Frame};

use crate::kv::handshake::{MAX_BODY, Rejected};

/// The client dials each node of a config, so a server must not invent any number
/// of them. The largest clusters have some hundreds.
const MAX_NODES: usize = 4096;

/// Parses the config in a frame. `host` replaces `$HOST` in it.
pub(crate) fn parse_config(frame: &Frame, host: &str) -> Result<ClusterConfig, Rejected> {
    let invalid = |problem: String| Rejected::lost(format!("the config is invalid: {problem}"));
    let json = frame
        .plain_value(MAX_BODY)
        .map_err(|error| invalid(error.to_string()))?;
    let config = ClusterConfig::parse(&json, host).map_err(|error| match error {
        DecodeError::NodeLocator { .. } => Rejected::unsupported_bucket(&error),
        error => invalid(error.to_string()),
    })?;
    match config.nodes.len() {
        ..=MAX_NODES => Ok(config),
        count => Err(invalid(format!("it has {count} nodes"))),
    }
}
