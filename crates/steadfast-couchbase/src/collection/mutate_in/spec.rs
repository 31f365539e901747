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

/// A value that the server fills in when it applies the change. Only extended
/// attributes can have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MutationMacro {
    /// The document's version.
    Cas,
    /// The number of the write in its vbucket.
    Seqno,
    /// The checksum of the document.
    ValueCrc32c,
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

    /// Adds an extended attribute that must not exist, and that the server fills in.
    pub fn insert_macro(path: impl Into<String>, value: MutationMacro) -> Self {
        Self::insert(path, value.text()).filled_in()
    }

    /// Sets an extended attribute that the server fills in.
    pub fn upsert_macro(path: impl Into<String>, value: MutationMacro) -> Self {
        Self::upsert(path, value.text()).filled_in()
    }

    /// Replaces an extended attribute by what the server fills in.
    pub fn replace_macro(path: impl Into<String>, value: MutationMacro) -> Self {
        Self::replace(path, value.text()).filled_in()
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

    fn filled_in(mut self) -> Self {
        self.flags |= PathFlags::XATTR | PathFlags::EXPAND_MACROS;
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

impl MutationMacro {
    const fn text(self) -> &'static str {
        match self {
            Self::Cas => "${Mutation.CAS}",
            Self::Seqno => "${Mutation.seqno}",
            Self::ValueCrc32c => "${Mutation.value_crc32c}",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_values_are_sent_without_brackets() {
        let spec = MutateInSpec::array_append("a", ["x", "y"]);
        assert_eq!(spec.value, br#""x","y""#);
        let spec = MutateInSpec::array_insert("a[0]", [Some(1), None]);
        assert_eq!(spec.value, b"1,null");
    }

    #[test]
    fn a_decrement_is_a_counter_with_a_sign() {
        assert_eq!(MutateInSpec::increment("n", 7).value, b"7");
        assert_eq!(MutateInSpec::decrement("n", 7).value, b"-7");
        let most = MutateInSpec::decrement("n", i64::MAX as u64);
        assert_eq!(most.value, i64::MIN.wrapping_add(1).to_string().as_bytes());
    }

    #[test]
    fn an_invalid_path_is_reported_with_its_index() {
        for spec in [
            MutateInSpec::insert("", &1),
            MutateInSpec::upsert("", &1),
            MutateInSpec::upsert_macro("", MutationMacro::Cas),
            MutateInSpec::array_append::<u8>("a", []),
            MutateInSpec::increment("n", 0),
            MutateInSpec::decrement("n", i64::MAX as u64 + 1),
        ] {
            let error = spec.check(3).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.to_string().contains("path 3"), "{error}");
        }
        let unencodable = std::collections::HashMap::from([(vec![1], 2)]);
        let error = MutateInSpec::insert("a", &unencodable)
            .check(0)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::EncodingFailure);
    }

    #[test]
    fn the_empty_path_is_the_whole_document() {
        assert_eq!(MutateInSpec::replace("", &1).opcode, Opcode::Set);
        assert_eq!(MutateInSpec::remove("").opcode, Opcode::Delete);
        assert!(MutateInSpec::replace("", &1).check(0).is_ok());
        assert!(MutateInSpec::remove("").check(0).is_ok());
    }
}
