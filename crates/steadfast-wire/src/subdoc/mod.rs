//! Subdocument commands: reading and changing parts of a JSON document.
//!
//! There are two forms. A *single-path* command has its own opcode, has its path in front of the
//! value and the length of the path in the extras: [`SinglePath`]. A *multi-path* command has a
//! value that is a row of specs, each with an opcode, flags and its own path:
//! [`LookupSpec`]s or [`MutationSpec`]s, never mixed.
//!
//! The answers differ too. Lookups are answered with one [`LookupResult`] for each spec, in order.
//! Mutations are applied all or none. If they were, the answer has a [`PathMutationResult`] for those that
//! return a value, such as a counter. If not, [`MutationOutcome`] has the first one that failed.
//!
//! ```
//! use bytes::BytesMut;
//! use steadfast_wire::subdoc::{LookupResult, LookupSpec, PathFlags};
//! use steadfast_wire::{DocumentKey, Entries, FrameBuilder, Opcode, Status};
//!
//! let specs = [
//!     LookupSpec { opcode: Opcode::SubdocGet, flags: PathFlags::empty(), path: b"name" },
//!     LookupSpec { opcode: Opcode::SubdocExists, flags: PathFlags::empty(), path: b"age" },
//! ];
//! let mut out = BytesMut::new();
//! FrameBuilder::request(Opcode::SubdocMultiLookup)
//!     .key(DocumentKey::without_collection(b"u:42"))
//!     .value(specs)
//!     .encode(&mut out)?;
//!
//! // The value of an answer: the name is there, the age is not.
//! let value = b"\x00\x00\x00\x00\x00\x05\"Ada\"\x00\xc0\x00\x00\x00\x00";
//! let results: Vec<LookupResult<'_>> = Entries::new(value).collect::<Result<_, _>>()?;
//! assert_eq!(results[0].value, br#""Ada""#);
//! assert_eq!(results[1].status, Status::SubdocPathNotFound);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod flags;
mod lookup;
mod multi;
mod mutation;
mod single;

pub use flags::{DocFlags, PathFlags};
pub use lookup::{LookupResult, LookupSpec};
pub use multi::MultiExtras;
pub use mutation::{MutationOutcome, MutationSpec, PathMutationResult};
pub use single::{SinglePath, SinglePathExtras};

/// The most specs in one multi-path command.
pub const MAX_SPECS: usize = 16;
