//! The services of a node.

use serde::{Deserialize, Serialize};

/// A service of a node, on a port of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Service {
    /// Key-value: the binary protocol.
    Kv,
    /// Management: REST.
    Mgmt,
    /// Query: SQL++.
    Query,
    /// Analytics.
    Analytics,
    /// Full-text search.
    Search,
    /// Map-reduce views.
    Views,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Kv,
        Self::Mgmt,
        Self::Query,
        Self::Analytics,
        Self::Search,
        Self::Views,
    ];

    /// The name that a cluster map has for its plain port.
    pub(crate) const fn config_name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Mgmt => "mgmt",
            Self::Query => "n1ql",
            Self::Analytics => "cbas",
            Self::Search => "fts",
            Self::Views => "capi",
        }
    }

    /// The port that a real server has for it, plain and TLS.
    pub(crate) const fn usual_ports(self) -> (u16, u16) {
        match self {
            Self::Kv => (11210, 11207),
            Self::Mgmt => (8091, 18091),
            Self::Query => (8093, 18093),
            Self::Analytics => (8095, 18095),
            Self::Search => (8094, 18094),
            Self::Views => (8092, 18092),
        }
    }
}

impl std::fmt::Display for Service {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Kv => "kv",
            Self::Mgmt => "mgmt",
            Self::Query => "query",
            Self::Analytics => "analytics",
            Self::Search => "search",
            Self::Views => "views",
        })
    }
}
