//! The error map: what a server says of its own status codes (RFC 0013).
//!
//! A client cannot know the statuses of servers that are newer than itself. It asks each one, once
//! a connection, for a map from code to attributes, and decides by the attributes about the codes
//! that it does not know. Which attributes drive what is the client's business; here the map is
//! data: [`ErrorMap`], read and written as JSON.
//!
//! A map is per connection. Revisions of different versions, or different servers, do not compare:
//! version 1 of a server has a greater revision than version 2 of the same.
//!
//! ```
//! use steadfast_wire::Status;
//! use steadfast_wire::error_map::{Attributes, ErrorMap};
//!
//! let map = ErrorMap::parse(br#"{"version": 2, "revision": 11, "errors": {
//!     "d9": {"name": "NEW", "desc": "Newer than this client", "attrs": ["temp", "retry-later"]}
//! }}"#)?;
//! let status = Status::from_code(0xd9);
//! assert!(matches!(status, Status::Unknown(_)));
//! let definition = map.get(status).expect("the map has it");
//! assert!(definition.attributes.contains(Attributes::TEMP) && definition.indicates_retry());
//! # Ok::<(), steadfast_wire::DecodeError>(())
//! ```

mod attributes;
mod json;
mod retry;
mod shipped;

use std::collections::BTreeMap;

pub use attributes::Attributes;
pub use retry::{ErrorMapBackoff, RetrySpec};

use crate::extras::layout::layout;
use crate::{DecodeError, Status};

layout! {
    /// The *value* of the request GetErrorMap.
    pub struct ErrorMapRequest called "the value of an error map request" {
        /// The greatest version that the client understands.
        pub version: u16,
    }
}

/// A server's statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMap {
    /// The format, which grows with the attributes.
    pub version: MapVersion,
    /// Grows with the codes, and is comparable within one version of one server only.
    pub revision: u32,
    /// The statuses by their code.
    pub errors: BTreeMap<u16, ErrorDefinition>,
}

/// What the map says of one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDefinition {
    /// A short name, for logs.
    pub name: String,
    /// A sentence, for messages.
    pub description: String,
    /// What to do about it. Those that this version does not know were ignored.
    pub attributes: Attributes,
    /// When to retry. Absent also if it names a strategy that this version does not know.
    pub retry: Option<RetrySpec>,
}

/// The versions of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapVersion {
    /// The first, for clients that could not ignore unknown attributes.
    V1,
    /// With the attributes `rate-limit`, `system-constraint` and `no-retry`.
    V2,
}

impl ErrorMap {
    /// Reads the JSON that a server sent, decompressed.
    ///
    /// # Errors
    /// If anything is corrupt: the RFC wants such a map ignored as a whole. The error says what
    /// and where. Unknown attributes, retry strategies and fields are not corrupt.
    pub fn parse(json: &[u8]) -> Result<Self, DecodeError> {
        json::parse(json)
    }

    /// The JSON for this map.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    /// The map that a current server ships: every status with a name here, but for
    /// [`Status::ScopeSizeLimitExceeded`], which only old servers had. It has no retry
    /// specifications.
    pub fn shipped(version: MapVersion) -> Self {
        shipped::map(version)
    }

    /// What the map says of a status.
    pub fn get(&self, status: Status) -> Option<&ErrorDefinition> {
        self.errors.get(&status.code())
    }
}

impl ErrorDefinition {
    /// Whether the attributes say that a retry may help: `retry-now`, `retry-later` or
    /// `auto-retry`, and not `no-retry`, which beats them (D27).
    pub fn indicates_retry(&self) -> bool {
        let asks = Attributes::RETRY_NOW | Attributes::RETRY_LATER | Attributes::AUTO_RETRY;
        self.attributes.intersects(asks) && !self.attributes.contains(Attributes::NO_RETRY)
    }
}

impl MapVersion {
    /// What to answer to a client that understands versions up to `greatest`: the newest of those.
    /// `None` for zero, of which there is no map.
    pub fn for_request(greatest: u16) -> Option<Self> {
        match greatest {
            0 => None,
            1 => Some(Self::V1),
            _ => Some(Self::V2),
        }
    }

    /// The number in the JSON.
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}
