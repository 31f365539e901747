//! Reasons: why an attempt failed.
//!
//! RFC 0049 draws its reasons up as a closed enumeration. An engine that knows
//! no protocol cannot: a KV client, an HTTP client and your own service each
//! have words of their own. So a reason is a *static definition* that any crate
//! may write down, and the rest of the engine passes references to it around.
//! That costs one pointer, needs no heap, and keeps the two flags of the RFC
//! next to the name they belong to.
//!
//! ```
//! use steadfast::Reason;
//!
//! /// The ledger is being compacted; nothing was applied.
//! static LEDGER_COMPACTING: Reason =
//!     Reason::new("LEDGER_COMPACTING").allowing_non_idempotent_retry();
//!
//! assert!(LEDGER_COMPACTING.allows_non_idempotent_retry());
//! assert!(!LEDGER_COMPACTING.always_retry());
//! ```

mod neutral;
mod set;

use std::fmt;
use std::hash::{Hash, Hasher};

pub use neutral::*;
pub use set::ReasonSet;

/// The definition of a reason: its name, and what it permits.
///
/// Declare reasons as `static` items. Two reasons are equal when their names
/// are, so a name must mean one thing in a program.
#[derive(Debug)]
pub struct Reason {
    name: &'static str,
    allows_non_idempotent_retry: bool,
    always_retry: bool,
    never_retry: bool,
}

impl Reason {
    /// Creates a reason that permits a retry of idempotent requests only.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            allows_non_idempotent_retry: false,
            always_retry: false,
            never_retry: false,
        }
    }

    /// States that an attempt which ended for this reason changed nothing, so
    /// that requests which are not idempotent may be retried too.
    pub const fn allowing_non_idempotent_retry(mut self) -> Self {
        self.allows_non_idempotent_retry = true;
        self
    }

    /// States that the strategy is not to be asked: the request is retried by
    /// the controlled backoff until its deadline (RFC 0049, "Retry Orchestration"). A
    /// response with this reason means that nothing was applied.
    pub const fn always_retried(mut self) -> Self {
        self.always_retry = true;
        self.allows_non_idempotent_retry = true;
        self
    }

    /// States that no request is ever retried for this reason, whatever else
    /// is known of it (RFC 0049, `UNKNOWN`; [D5](crate::decisions#d5)).
    pub const fn never_retried(mut self) -> Self {
        self.never_retry = true;
        self
    }

    /// Returns the name, as in logs, errors and metrics.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns whether requests that are not idempotent may be retried for this reason.
    pub const fn allows_non_idempotent_retry(&self) -> bool {
        self.allows_non_idempotent_retry
    }

    /// Returns whether the retry happens without asking the strategy.
    pub const fn always_retry(&self) -> bool {
        self.always_retry
    }

    /// Returns whether requests are never retried for this reason.
    pub const fn never_retry(&self) -> bool {
        self.never_retry
    }
}

impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        // The same static is equal without a look at the names.
        std::ptr::eq(self, other) || self.name == other.name
    }
}

impl Eq for Reason {}

impl Hash for Reason {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
