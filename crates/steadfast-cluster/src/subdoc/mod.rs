//! Reading and changing parts of a document.
//!
//! A subdocument operation names paths inside a JSON document, or inside its
//! extended attributes (xattrs), and does something at each. From the small to the
//! whole:
//!
//! - [`path`]: parsed paths;
//! - [`tree`]: one operation at one path of one JSON value;
//! - [`attributes`]: the xattrs of a document, the virtual ones, and macros;
//! - [`lookup`] and [`mutate`]: whole requests against one document.
//!
//! Values are parsed, changed and written again, so white space inside a document
//! does not survive a mutation, and an integer beyond 64 bits becomes a float. SDKs
//! do not depend on either.

pub(crate) mod attributes;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod lookup;
pub(crate) mod mutate;
pub(crate) mod path;
pub(crate) mod tree;
