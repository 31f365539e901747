//! Options of how requests travel.

use std::time::Duration;

use super::interval;
use crate::config_error::ConfigError;

/// The delay of a request after "not my vbucket" ([D21](steadfast::decisions#d21)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VbucketRetry {
    /// RFC 0049's controlled backoff: 1, 10, 50, 100, 500, 1000, 1000 … ms.
    #[default]
    Controlled,
    /// Always the same; 100 ms is RFC 0005 to the letter.
    Fixed(Duration),
    /// Once until the map changes, at most a quarter of the time that is left and 5 s, and then
    /// the controlled backoff ([D63](steadfast::decisions#d63)).
    ///
    /// The client asks for the new map once for all requests, so that a request takes two
    /// attempts, if the map comes in that time. Not for a server whose nodes get the map before
    /// they get the vbuckets: a request then waits although it could go on.
    AwaitMap,
}

/// Which of their addresses the nodes are reached by.
///
/// A cluster behind address translation has for each node the address that it
/// has itself, and others under names; most often there is one, `external`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Network {
    /// The one whose addresses contain a host of the connection string.
    #[default]
    Auto,
    /// The nodes' own addresses.
    Default,
    /// The alternate addresses with this name.
    Named(String),
}

/// Whether, and which, documents are compressed with Snappy on their way to the
/// server. Those that a server sends compressed are understood in any case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Compression {
    /// None.
    Off,
    /// Those that are worth it.
    Snappy {
        /// Shorter ones are left alone.
        min_size: usize,
        /// Those that do not shrink to this part of their length are sent as they
        /// are.
        max_ratio: f32,
    },
}

impl VbucketRetry {
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Self::Controlled | Self::AwaitMap => Ok(()),
            Self::Fixed(delay) => interval("vbucket_retry", delay),
        }
    }
}

impl Network {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::Auto | Self::Default => Ok(()),
            Self::Named(name) if name.is_empty() => Err(ConfigError::new("network", "is empty")),
            Self::Named(_) => Ok(()),
        }
    }
}

impl Compression {
    pub(super) fn validate(self) -> Result<(), ConfigError> {
        match self {
            Self::Off => Ok(()),
            Self::Snappy { max_ratio, .. } if max_ratio > 0.0 && max_ratio <= 1.0 => Ok(()),
            Self::Snappy { max_ratio, .. } => {
                let problem = format!("has a ratio of {max_ratio}, which is not between 0 and 1");
                Err(ConfigError::new("compression", problem))
            }
        }
    }
}

impl Default for Compression {
    /// From 32 bytes on, if it saves 17 %: the numbers of all Couchbase clients.
    fn default() -> Self {
        Self::Snappy {
            min_size: 32,
            max_ratio: 0.83,
        }
    }
}
