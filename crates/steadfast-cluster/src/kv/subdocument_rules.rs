//! Rejects invalid subdocument requests as a whole, before the document is looked at.

use steadfast_wire::subdoc::{DocFlags, LookupSpec, MutationSpec, PathFlags};
use steadfast_wire::{Feature, Opcode, Status};

use super::session::Session;
use crate::subdoc::attributes;
use crate::subdoc::lookup::MAX_PATHS;

/// The longest path.
const MAX_PATH_BYTES: usize = 1024;
/// The longest key of an extended attribute.
const MAX_XATTR_KEY_BYTES: usize = 15;

/// One path of a request, with what its opcode allows.
struct PathRules {
    /// The flags that it may have.
    flags: PathFlags,
    /// Whether it has a value.
    has_value: bool,
    /// Whether its path may, or must, be empty.
    path: PathPresence,
}

#[derive(PartialEq, Eq)]
enum PathPresence {
    Required,
    Optional,
    /// The whole document is meant.
    Absent,
}

impl Session {
    pub(super) fn check_lookups(&self, specs: &[LookupSpec<'_>]) -> Result<(), Status> {
        let specs = specs.iter().map(|spec| MutationSpec {
            opcode: spec.opcode,
            flags: spec.flags,
            path: spec.path,
            value: &[],
        });
        self.check_paths(specs, lookup_rules, false)
    }

    pub(super) fn check_mutations(&self, specs: &[MutationSpec<'_>]) -> Result<(), Status> {
        self.check_paths(specs.iter().copied(), mutation_rules, true)
    }

    fn check_paths<'a>(
        &self,
        specs: impl Iterator<Item = MutationSpec<'a>>,
        rules: impl Fn(Opcode) -> Option<PathRules>,
        mutates: bool,
    ) -> Result<(), Status> {
        let several = Feature::SubdocAllowsAccessOnMultipleXattrKeys;
        let mut only_key = None;
        for (index, spec) in specs.enumerate() {
            if index == MAX_PATHS {
                return Err(Status::SubdocInvalidCombo);
            }
            let rules = rules(spec.opcode).ok_or(Status::SubdocInvalidCombo)?;
            rules.check(&spec)?;
            if !spec.flags.contains(PathFlags::XATTR) {
                if spec.flags.contains(PathFlags::EXPAND_MACROS) {
                    return Err(Status::SubdocXattrInvalidFlagCombo);
                }
                continue;
            }
            let key = xattr_key(spec.path)?;
            if key.starts_with(b"$") {
                if mutates {
                    return Err(Status::SubdocXattrCannotModifyVattr);
                }
            } else if *only_key.get_or_insert(key) != key && !self.features.contains(several) {
                return Err(Status::SubdocXattrInvalidKeyCombo);
            }
            if spec.flags.contains(PathFlags::EXPAND_MACROS) && !attributes::is_macro(spec.value) {
                return Err(Status::SubdocXattrUnknownMacro);
            }
        }
        Ok(())
    }
}

impl PathRules {
    fn check(&self, spec: &MutationSpec<'_>) -> Result<(), Status> {
        let path_is_valid = match self.path {
            PathPresence::Required => !spec.path.is_empty(),
            PathPresence::Optional => true,
            PathPresence::Absent => spec.path.is_empty(),
        };
        // An attribute without a name has its own error.
        let path_is_valid = path_is_valid || spec.flags.contains(PathFlags::XATTR);
        let is_valid = (spec.flags - self.flags).is_empty()
            && path_is_valid
            && spec.path.len() <= MAX_PATH_BYTES
            && spec.value.is_empty() != self.has_value;
        match is_valid {
            true => Ok(()),
            false => Err(Status::InvalidArguments),
        }
    }
}

fn lookup_rules(opcode: Opcode) -> Option<PathRules> {
    let (path, flags) = match opcode {
        Opcode::SubdocGet | Opcode::SubdocExists => (PathPresence::Required, true),
        Opcode::SubdocGetCount => (PathPresence::Optional, true),
        Opcode::Get => (PathPresence::Absent, false),
        _ => return None,
    };
    let flags = match flags {
        true => PathFlags::XATTR | PathFlags::BINARY,
        false => PathFlags::empty(),
    };
    Some(PathRules {
        flags,
        has_value: false,
        path,
    })
}

fn mutation_rules(opcode: Opcode) -> Option<PathRules> {
    const XATTR: PathFlags = PathFlags::XATTR;
    const VALUE: PathFlags = XATTR
        .union(PathFlags::EXPAND_MACROS)
        .union(PathFlags::BINARY);
    const PARENTS: PathFlags = PathFlags::CREATE_PARENTS;
    let (flags, has_value, path) = match opcode {
        Opcode::SubdocDictAdd | Opcode::SubdocDictUpsert => {
            (VALUE | PARENTS, true, PathPresence::Required)
        }
        Opcode::SubdocArrayPushLast | Opcode::SubdocArrayPushFirst => {
            (VALUE | PARENTS, true, PathPresence::Optional)
        }
        Opcode::SubdocReplace | Opcode::SubdocArrayInsert => (VALUE, true, PathPresence::Required),
        // A macro differs each time, so "unique" would say nothing.
        Opcode::SubdocArrayAddUnique => (
            XATTR | PathFlags::BINARY | PARENTS,
            true,
            PathPresence::Optional,
        ),
        Opcode::SubdocCounter => (XATTR | PARENTS, true, PathPresence::Required),
        Opcode::SubdocDelete => (XATTR, false, PathPresence::Required),
        Opcode::SubdocReplaceBodyWithXattr => {
            (XATTR | PathFlags::BINARY, false, PathPresence::Required)
        }
        Opcode::Set => (PathFlags::empty(), true, PathPresence::Absent),
        Opcode::Delete => (PathFlags::empty(), false, PathPresence::Absent),
        _ => return None,
    };
    Some(PathRules {
        flags,
        has_value,
        path,
    })
}

/// Returns the key of the extended attribute that a path is in.
fn xattr_key(path: &[u8]) -> Result<&[u8], Status> {
    let end = path.iter().position(|byte| b".[".contains(byte));
    let key = &path[..end.unwrap_or(path.len())];
    let reserved = |first: &u8| first.is_ascii_punctuation() && !b"_$".contains(first);
    let is_valid = (1..=MAX_XATTR_KEY_BYTES).contains(&key.len())
        && !key.first().is_some_and(reserved)
        && !key.iter().any(u8::is_ascii_control);
    match is_valid {
        true => Ok(key),
        false => Err(Status::XattrInvalid),
    }
}

/// Rejects flags of the document that a lookup cannot have.
pub(super) fn check_lookup_flags(flags: DocFlags) -> Result<(), Status> {
    // A replica does not show tombstones.
    let both = DocFlags::ACCESS_DELETED | DocFlags::REPLICA_READ;
    match (flags - both).is_empty() && !flags.contains(both) {
        true => Ok(()),
        false => Err(Status::InvalidArguments),
    }
}

/// Rejects flags of the document that a mutation cannot have.
pub(super) fn check_mutation_flags(flags: DocFlags, cas: u64) -> Result<(), Status> {
    let known = DocFlags::all() - DocFlags::REPLICA_READ;
    let has = |flag| flags.contains(flag);
    let contradicts = has(DocFlags::UPSERT | DocFlags::INSERT)
        || (has(DocFlags::INSERT) && cas != 0)
        || (has(DocFlags::REVIVE)
            && (!has(DocFlags::ACCESS_DELETED) || has(DocFlags::CREATE_AS_DELETED)));
    match (flags - known).is_empty() && !contradicts {
        true => Ok(()),
        false => Err(Status::InvalidArguments),
    }
}

/// Rejects a mutation of one path that would create a tombstone with a body, or create none.
///
/// Several paths may do so: a transaction that replaces what it inserted changes the tombstone.
pub(super) fn check_single_mutation(doc_flags: DocFlags, path: PathFlags) -> Result<(), Status> {
    let creates = doc_flags.intersects(DocFlags::UPSERT | DocFlags::INSERT);
    let is_valid = creates && path.contains(PathFlags::XATTR);
    match is_valid || !doc_flags.contains(DocFlags::CREATE_AS_DELETED) {
        true => Ok(()),
        false => Err(Status::InvalidArguments),
    }
}
