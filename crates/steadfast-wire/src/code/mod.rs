//! Codes of the protocol and their names.
//!
//! Each set of codes is an enum with one variant for every code this version knows and one,
//! `Unknown`, that keeps any other number. A `match` can therefore be exhaustive, so that a new
//! code breaks the build where it matters, and nothing that a newer server says is lost.

mod datatype;
mod feature;
mod magic;
mod opcode;
pub(crate) mod open_enum;
mod status;

pub use datatype::Datatype;
pub use feature::{Feature, UnknownFeature};
pub use magic::Magic;
pub use opcode::{Opcode, ServerOpcode, UnknownOpcode, UnknownServerOpcode};
pub use status::{Status, UnknownStatus};
