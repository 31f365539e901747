//! Reads cluster configs from responses and notifications.

use steadfast_wire::config::{ClusterConfig, ConfigNode};
use steadfast_wire::{DecodeError, Frame};

use crate::kv::handshake::{MAX_BODY, Rejected};

/// The longest name that DNS has.
const LONGEST_NAME: usize = 255;

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
    if !config.nodes.iter().all(has_valid_names) {
        return Err(invalid("a host name is invalid".to_owned()));
    }
    Ok(config)
}

/// Whether the names of a node can be shown and looked up.
fn has_valid_names(node: &ConfigNode) -> bool {
    let alternates = node
        .alternate_addresses
        .values()
        .map(|other| &other.hostname);
    [&node.hostname].into_iter().chain(alternates).all(|name| {
        let odd = |c: char| c.is_control() || c.is_whitespace();
        name.len() <= LONGEST_NAME && !name.contains(odd)
    })
}
