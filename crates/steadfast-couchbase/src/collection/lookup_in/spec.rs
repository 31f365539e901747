//! Paths to read.

use steadfast_wire::Opcode;
use steadfast_wire::subdoc::{LookupSpec, PathFlags};

/// A part of a document to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupInSpec<'a>(LookupSpec<'a>);

impl<'a> LookupInSpec<'a> {
    const fn new(opcode: Opcode, path: &'a str) -> Self {
        Self(LookupSpec {
            opcode,
            flags: PathFlags::empty(),
            path: path.as_bytes(),
        })
    }

    /// Reads the value at a path, such as `address.street` or `friends[0]`. The empty path
    /// is the whole document.
    pub const fn get(path: &'a str) -> Self {
        let opcode = if path.is_empty() {
            Opcode::Get
        } else {
            Opcode::SubdocGet
        };
        Self::new(opcode, path)
    }

    /// Checks whether a path exists.
    pub const fn exists(path: &'a str) -> Self {
        Self::new(Opcode::SubdocExists, path)
    }

    /// Counts the elements of the array, or the members of the object, at a path.
    pub const fn count(path: &'a str) -> Self {
        Self::new(Opcode::SubdocGetCount, path)
    }

    /// Names an extended attribute. Those that begin with `$` are virtual: the server
    /// computes them.
    #[must_use]
    pub const fn xattr(mut self) -> Self {
        self.0.flags = self.0.flags.union(PathFlags::XATTR);
        self
    }

    pub(super) fn is_xattr(&self) -> bool {
        self.0.flags.contains(PathFlags::XATTR)
    }

    pub(super) fn asks_existence(&self) -> bool {
        self.0.opcode == Opcode::SubdocExists
    }

    pub(super) fn on_wire(&self) -> LookupSpec<'a> {
        self.0
    }
}
