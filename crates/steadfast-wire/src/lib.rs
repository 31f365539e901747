//! The bytes of the Couchbase key-value protocol, and nothing else.
//!
//! A client and a server disagree about everything but the bytes between them. This crate is
//! those bytes: it opens no socket, reads no clock and keeps no state between calls, so the
//! client, the cluster that tests it and a fuzzer can all run exactly the same code.
//!
//! Four rules hold everywhere.
//!
//! 1. **What arrives is untrusted.** Every length is checked against what is there before it is
//!    used, and against a limit before anything is allocated. No decoder panics; an error says
//!    which field of which message was wrong.
//! 2. **Unknown is not invalid.** A code that this version has no name for (a status, an opcode,
//!    a feature, a frame info) is kept as the number it came as. The protocol grows by such codes,
//!    and the error map exists to explain them.
//! 3. **Decoding copies nothing.** A [`Frame`] is a header and one reference-counted slice of the
//!    receive buffer; keys, values and paths are views of it.
//! 4. **Encoding writes once.** A [`FrameBuilder`] measures its sections first and then writes
//!    them straight into the caller's buffer, so it allocates nothing and a message that cannot be
//!    encoded leaves the buffer as it was.
//!
//! ```
//! use bytes::BytesMut;
//! use steadfast_wire::{Decoded, FrameBuilder, FrameDecoder, Opcode, Status};
//!
//! let mut buffer = BytesMut::new();
//! FrameBuilder::request(Opcode::Get)
//!     .vbucket(115)
//!     .opaque(7)
//!     .key(b"foo")
//!     .encode(&mut buffer)?;
//!
//! let Decoded::Frame(request) = FrameDecoder::from_client().decode(&mut buffer)? else {
//!     panic!("the whole frame is there");
//! };
//! assert_eq!(request.opcode(), Opcode::Get);
//! assert_eq!(request.key(), b"foo");
//!
//! FrameBuilder::reply(&request, Status::KeyNotFound).encode(&mut buffer)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod code;
pub mod collections;
pub mod config;
mod decode;
mod encode;
mod entries;
mod error_body;
pub mod error_map;
pub mod extras;
mod frame;
pub mod frame_info;
pub mod hello;
mod hex;
mod key;
pub mod leb128;
pub mod observe;
pub mod sasl;
pub mod snappy;
pub mod subdoc;
pub mod vbucket;

pub use code::{
    Datatype, Feature, Magic, Opcode, ServerOpcode, Status, UnknownFeature, UnknownOpcode,
    UnknownServerOpcode, UnknownStatus,
};
pub use decode::{DecodeError, Expected};
pub use encode::{Encode, EncodeError};
pub use entries::{Entries, ReadEntry};
pub use error_body::ErrorBody;
pub use frame::{
    DEFAULT_MAX_BODY, Decoded, Frame, FrameBuilder, FrameDecoder, FrameError, HEADER_LEN, Header,
};
pub use key::{CollectionId, DocumentKey, ScopeId};
