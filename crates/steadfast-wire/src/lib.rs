//! Encoding and decoding of the Couchbase key-value protocol.
//!
//! This crate opens no socket, reads no clock and keeps no state between calls. So the client, the
//! test cluster and the fuzzers run the same code.
//!
//! Start with [`FrameBuilder`] to write a message and with [`FrameDecoder`] to read one. Each
//! section of a frame has its own module, such as [`extras`], [`subdoc`] and [`frame_info`].
//! [`config`] and [`error_map`] parse the JSON that servers send.
//!
//! Four rules hold everywhere.
//!
//! 1. **Input is untrusted.** Every length is checked before it is used, and against a limit before
//!    anything is allocated. No decoder panics. An error names the field that is invalid.
//! 2. **Unknown is not invalid.** A code without a name (a status, an opcode, a feature, a frame
//!    info) is kept as a number, because newer servers send new codes.
//! 3. **Decoding copies nothing.** A [`Frame`] is a header and one reference-counted slice of the
//!    receive buffer; keys, values and paths are views of it.
//! 4. **Encoding writes once.** A [`FrameBuilder`] measures its sections and then writes them
//!    straight into the caller's buffer. It allocates nothing, and an error leaves the buffer
//!    unchanged.
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
pub use key::{CollectionId, DocumentKey};
