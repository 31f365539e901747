//! Rows as they come.
//!
//! Query, analytics, search and views answer alike: a JSON object with one long
//! array in it, and around that array what is to be said about the whole. The
//! status line is long gone when a row fails, so errors stand behind the rows, and
//! only who has read to the end knows that all went well.
//!
//! - [`splitter`] cuts the answer into rows and members without ever holding more
//!   than one row, and is bounded in whatever a server could make large.
//! - [`Rows`] hands the rows out, and what was said around them at the end.
//!
//! A retry is possible until the first row is handed out and no longer. So an
//! attempt reads up to the first row, or to the end if there is none, before the
//! operation counts as succeeded.

mod members;
mod splitter;
mod stream;
mod value;

pub(crate) use members::Members;
pub(crate) use splitter::{Limits, Malformed, Splitter};
pub(crate) use stream::{Next, Source, Trouble};
pub use stream::{Rows, TypedRows};
