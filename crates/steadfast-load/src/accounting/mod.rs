//! Whether every write came to what its client was told.
//!
//! Three sources speak about a write: the client, who was told an outcome; the
//! cluster's journal, which has every mutation that was applied; and the documents,
//! read back through the client. They must agree:
//!
//! | the client was told | applied | found when read back |
//! |---|---|---|
//! | acknowledged | exactly once | once |
//! | failed | never | never |
//! | may have been applied | at most once | at most once |
//!
//! Whatever else is found is a [`Violation`]. An acknowledged write that is not
//! there is *lost*; one that is there more often than once was *applied twice*; the
//! rest is *unexplained*: a write that was said to have failed and is there, an
//! error that no fault explains, an entry of the journal that no write explains.
//!
//! All acknowledged writes count, durable or not. A failover of a real cluster may
//! lose a write that was acknowledged by one node alone; this script fails a node
//! over only while every replica is in step, so nothing may be lost here.
//!
//! - [`Ledger`]: the writes of one worker.
//! - [`Record`]: one write, and the law above.
//! - [`Audit`]: reads the journal into the ledgers.

mod audit;
mod ledger;
mod record;
mod violation;

pub use audit::{Applied, Audit, identify};
pub use ledger::{Ledger, Totals};
pub use record::{Outcome, Record};
pub use violation::{Violation, Wrong};
