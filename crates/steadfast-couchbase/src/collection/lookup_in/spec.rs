//! Paths to read.

use steadfast_wire::Opcode;
use steadfast_wire::subdoc::{LookupSpec, PathFlags};

/// A part of a document to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupInSpec<'a> {
    opcode: Opcode,
    path: &'a str,
    xattr: bool,
}

impl<'a> LookupInSpec<'a> {
    const fn new(opcode: Opcode, path: &'a str) -> Self {
        Self {
            opcode,
            path,
            xattr: false,
        }
    }

    /// What is at a path, such as `address.street` or `friends[0]`. The empty path
    /// is the whole document.
    pub const fn get(path: &'a str) -> Self {
        let opcode = if path.is_empty() {
            Opcode::Get
        } else {
            Opcode::SubdocGet
        };
        Self::new(opcode, path)
    }

    /// Whether there is something at a path.
    pub const fn exists(path: &'a str) -> Self {
        Self::new(Opcode::SubdocExists, path)
    }

    /// How many elements the array, or members the object, at a path has.
    pub const fn count(path: &'a str) -> Self {
        Self::new(Opcode::SubdocGetCount, path)
    }

    /// The path is one of an extended attribute; those that begin with `$` the
    /// server makes up.
    #[must_use]
    pub const fn xattr(mut self) -> Self {
        self.xattr = true;
        self
    }

    pub(super) fn is_xattr(&self) -> bool {
        self.xattr
    }

    pub(super) fn asks_existence(&self) -> bool {
        self.opcode == Opcode::SubdocExists
    }

    pub(super) fn on_wire(&self) -> LookupSpec<'a> {
        LookupSpec {
            opcode: self.opcode,
            flags: if self.xattr {
                PathFlags::XATTR
            } else {
                PathFlags::empty()
            },
            path: self.path.as_bytes(),
        }
    }
}
