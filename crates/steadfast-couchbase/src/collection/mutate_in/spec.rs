//! Changes to parts of a document.

use serde::Serialize;
use steadfast_wire::Opcode;
use steadfast_wire::subdoc::{MutationSpec, PathFlags};

use crate::error::{Error, ErrorKind, Result};

/// A change of a part of a document.
#[derive(Clone, Debug)]
pub struct MutateInSpec {
    opcode: Opcode,
    flags: PathFlags,
    path: String,
    value: Vec<u8>,
    /// The reason why it is invalid, reported when it is used.
    problem: Option<(ErrorKind, String)>,
}

impl MutateInSpec {
    /// Adds a member that must not exist.
    pub fn insert<T: Serialize + ?Sized>(path: impl Into<String>, value: &T) -> Self {
        Self::with_value(Opcode::SubdocDictAdd, path, value).at_a_path()
    }

    /// Sets a member, whether it exists or not.
    pub fn upsert<T: Serialize + ?Sized>(path: impl Into<String>, value: &T) -> Self {
        Self::with_value(Opcode::SubdocDictUpsert, path, value).at_a_path()
    }

    /// Replaces what is at a path; at the empty path, the whole document.
    pub fn replace<T: Serialize + ?Sized>(path: impl Into<String>, value: &T) -> Self {
        let path = path.into();
        let opcode = if path.is_empty() {
            Opcode::Set
        } else {
            Opcode::SubdocReplace
        };
        Self::with_value(opcode, path, value)
    }

    /// Removes what is at a path; at the empty path, the whole document.
    pub fn remove(path: impl Into<String>) -> Self {
        let path = path.into();
        let opcode = if path.is_empty() {
            Opcode::Delete
        } else {
            Opcode::SubdocDelete
        };
        Self::new(opcode, path, Vec::new())
    }

    /// Adds values to the end of an array.
    pub fn array_append<T: Serialize>(
        path: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::with_values(Opcode::SubdocArrayPushLast, path, values)
    }

    /// Adds values to the beginning of an array.
    pub fn array_prepend<T: Serialize>(
        path: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::with_values(Opcode::SubdocArrayPushFirst, path, values)
    }

    /// Adds values to an array where the path says, such as `friends[2]`.
    pub fn array_insert<T: Serialize>(
        path: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::with_values(Opcode::SubdocArrayInsert, path, values)
    }

    /// Adds a string, number, boolean or null to an array that does not have it.
    pub fn array_add_unique<T: Serialize + ?Sized>(path: impl Into<String>, value: &T) -> Self {
        Self::with_value(Opcode::SubdocArrayAddUnique, path, value)
    }

    /// Adds to a number; if there is none, it is set. At least by one, and by
    /// [`i64::MAX`] at most.
    pub fn increment(path: impl Into<String>, delta: u64) -> Self {
        Self::counter(path, delta, 1)
    }

    /// Subtracts from a number, as [`increment`](Self::increment) adds.
    pub fn decrement(path: impl Into<String>, delta: u64) -> Self {
        Self::counter(path, delta, -1)
    }

    /// The path is one of an extended attribute.
    #[must_use]
    pub fn xattr(mut self) -> Self {
        self.flags |= PathFlags::XATTR;
        self
    }

    /// Creates the objects that the path goes through.
    #[must_use]
    pub fn create_path(mut self) -> Self {
        self.flags |= PathFlags::CREATE_PARENTS;
        self
    }

    fn new(opcode: Opcode, path: impl Into<String>, value: Vec<u8>) -> Self {
        Self {
            opcode,
            flags: PathFlags::empty(),
            path: path.into(),
            value,
            problem: None,
        }
    }

    fn with_value<T: Serialize + ?Sized>(
        opcode: Opcode,
        path: impl Into<String>,
        value: &T,
    ) -> Self {
        match serde_json::to_vec(value) {
            Ok(value) => Self::new(opcode, path, value),
            Err(error) => Self::new(opcode, path, Vec::new()).unencodable(&error),
        }
    }

    /// The values one after the other, without the brackets around them.
    fn with_values<T: Serialize>(
        opcode: Opcode,
        path: impl Into<String>,
        values: impl IntoIterator<Item = T>,
    ) -> Self {
        let mut spec = Self::new(opcode, path, Vec::new());
        for value in values {
            if !spec.value.is_empty() {
                spec.value.push(b',');
            }
            if let Err(error) = serde_json::to_writer(&mut spec.value, &value) {
                return spec.unencodable(&error);
            }
        }
        if spec.value.is_empty() {
            return spec.invalid("there is no value to add");
        }
        spec
    }

    fn counter(path: impl Into<String>, delta: u64, sign: i64) -> Self {
        match i64::try_from(delta) {
            Ok(delta) if delta > 0 => {
                Self::with_value(Opcode::SubdocCounter, path, &(sign * delta))
            }
            _ => {
                let spec = Self::new(Opcode::SubdocCounter, path, Vec::new());
                spec.invalid("the delta is not between 1 and 9223372036854775807")
            }
        }
    }

    /// The empty path is the whole document, which this does not do (SDK RFC 0053).
    fn at_a_path(self) -> Self {
        if self.path.is_empty() {
            return self.invalid("the path is empty");
        }
        self
    }

    fn unencodable(mut self, error: &serde_json::Error) -> Self {
        let problem = (ErrorKind::EncodingFailure, error.to_string());
        self.problem.get_or_insert(problem);
        self
    }

    fn invalid(mut self, problem: &str) -> Self {
        let problem = (ErrorKind::InvalidArgument, problem.to_owned());
        self.problem.get_or_insert(problem);
        self
    }

    pub(super) fn check(&self, index: usize) -> Result<()> {
        match &self.problem {
            None => Ok(()),
            Some((kind, problem)) => {
                let problem = format!("path {index}: {problem}");
                Err(Error::new(*kind, super::OPERATION.name()).because(problem))
            }
        }
    }

    pub(super) fn is_xattr(&self) -> bool {
        self.flags.contains(PathFlags::XATTR)
    }

    pub(super) fn on_wire(&self) -> MutationSpec<'_> {
        MutationSpec {
            opcode: self.opcode,
            flags: self.flags,
            path: self.path.as_bytes(),
            value: &self.value,
        }
    }
}
