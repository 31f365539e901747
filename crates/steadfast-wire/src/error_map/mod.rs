//! The error map: a server's description of its own status codes (RFC 0013).
//!
//! A client does not know the statuses of newer servers. On each connection it asks for a map from
//! codes to attributes, and handles unknown codes by their attributes. Here the map is only data:
//! [`ErrorMap`], read and written as JSON.
//!
//! A map belongs to a connection. Revisions of different versions or servers are not comparable.
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

/// The description of one status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorDefinition {
    /// A short name, for logs.
    pub name: String,
    /// A sentence, for messages.
    pub description: String,
    /// The attributes. Unknown ones are ignored.
    pub attributes: Attributes,
    /// The retry specification. Absent also if its strategy is unknown.
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

    /// Returns the description of a status.
    pub fn get(&self, status: Status) -> Option<&ErrorDefinition> {
        self.errors.get(&status.code())
    }
}

impl ErrorDefinition {
    /// Returns whether the definition indicates a retry: by `retry-now` or `retry-later`, or by
    /// `auto-retry` together with a retry specification, which that attribute refers to (D61).
    /// `no-retry` and `success` beat them (D27): what was applied must not be sent again.
    pub fn indicates_retry(&self) -> bool {
        let asks = Attributes::RETRY_NOW | Attributes::RETRY_LATER;
        let forbids = Attributes::NO_RETRY | Attributes::SUCCESS;
        let by_specification =
            self.attributes.contains(Attributes::AUTO_RETRY) && self.retry.is_some();
        (by_specification || self.attributes.intersects(asks))
            && !self.attributes.intersects(forbids)
    }
}

impl MapVersion {
    /// Returns the newest version for a client that understands versions up to `greatest`.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn no_retry_beats_every_attribute_that_asks_for_one() {
        let asks = [
            Attributes::RETRY_NOW,
            Attributes::RETRY_LATER,
            Attributes::AUTO_RETRY,
        ];
        let specification = RetrySpec {
            strategy: ErrorMapBackoff::Constant,
            interval: Duration::from_millis(1),
            after: Duration::from_millis(1),
            max_duration: None,
            ceil: None,
        };
        let indicates_with = |retry, attributes| {
            let definition = ErrorDefinition {
                name: "NAME".to_owned(),
                description: String::new(),
                attributes,
                retry,
            };
            definition.indicates_retry()
        };
        let indicates = |attributes| indicates_with(Some(specification), attributes);
        for ask in asks {
            assert!(
                indicates(ask) && indicates(ask | Attributes::TEMP),
                "{ask:?}"
            );
            assert!(!indicates(ask | Attributes::NO_RETRY), "{ask:?}");
            assert!(!indicates(ask | Attributes::SUCCESS), "{ask:?}");
        }
        assert!(!indicates(Attributes::NO_RETRY) && !indicates(Attributes::TEMP));
        // Without a specification, `auto-retry` refers to nothing (D61).
        assert!(!indicates_with(None, Attributes::AUTO_RETRY));
        assert!(indicates_with(
            None,
            Attributes::AUTO_RETRY | Attributes::RETRY_LATER
        ));
    }
}
