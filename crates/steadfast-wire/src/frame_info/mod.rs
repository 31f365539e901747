//! Frame infos: what a frame says beyond its command.
//!
//! The framing extras of a flexible frame are a row of *frame infos*, each an id, a length and a
//! payload. They carry what concerns many commands, such as durability on the way to the server
//! and the time that it took on the way back, so that a new such thing does not change the layout
//! of every command.
//!
//! Encode a slice of them to write framing extras; go through [`Entries`](crate::Entries) to read.
//!
//! A reader meets ids that it does not know. A server must refuse them, because it cannot do what
//! they ask; a client can skip them. Both get them as [`RawFrameInfo`]s.

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
