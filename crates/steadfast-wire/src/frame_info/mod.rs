//! Frame infos: the parts of a frame that many commands share.
//!
//! The framing extras of a flexible frame are a list of *frame infos*, each an id, a length and a
//! payload. Examples are the durability in a request and the server's duration in a response.
//!
//! Encode a slice of them to write framing extras; iterate over [`Entries`](crate::Entries) to read.
//!
//! A server must reject unknown ids; a client can skip them. Both get them as [`RawFrameInfo`]s.

mod durability;
mod duration;
mod raw;
mod request;
mod response;

pub use durability::{Durability, DurabilityLevel, DurabilityTimeout, UnknownDurabilityLevel};
pub use duration::ServerDuration;
pub use raw::RawFrameInfo;
pub use request::RequestFrameInfo;
pub use response::ResponseFrameInfo;
