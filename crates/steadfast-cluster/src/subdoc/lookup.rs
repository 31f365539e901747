//! Reading several parts of one document.

use serde_json::Value;
use steadfast_wire::subdoc::{LookupSpec, PathFlags};
use steadfast_wire::{Datatype, Opcode, Status};

use super::attributes::{self, Stamp};
use super::path::{Component, Path};
use super::tree;
use crate::store::document::StoredDocument;

/// The most paths in one request.
pub(crate) const MAX_PATHS: usize = 16;

/// Does the parts of a lookup, each with its own result.
pub(crate) fn run(
    specs: &[LookupSpec<'_>],
    document: &StoredDocument,
    stamp: Stamp,
) -> Result<Vec<Result<Vec<u8>, Status>>, Status> {
    check_combination(specs)?;
    let body = document.inflated()?;
    let parsed = parse_if_needed(specs, document, &body);
    Ok(specs
        .iter()
        .map(|spec| match spec.opcode {
            Opcode::Get => Ok(body.to_vec()),
            _ if spec.flags.contains(PathFlags::XATTR) => read_attribute(spec, document, stamp),
            _ => match &parsed {
                Some(root) => read(spec.opcode, root, &Path::parse(spec.path)?),
                None => Err(Status::SubdocDocNotJson),
            },
        })
        .collect())
}

/// Returns the number of xattr specs, which must come before all others.
pub(super) fn count_xattrs<S>(
    specs: &[S],
    flags: impl Fn(&S) -> PathFlags,
) -> Result<usize, Status> {
    if specs.is_empty() || specs.len() > MAX_PATHS {
        return Err(Status::SubdocInvalidCombo);
    }
    let is_xattr = |spec: &S| flags(spec).contains(PathFlags::XATTR);
    if !specs.is_sorted_by_key(|spec| !is_xattr(spec)) {
        return Err(Status::SubdocInvalidXattrOrder);
    }
    Ok(specs.partition_point(is_xattr))
}

fn check_combination(specs: &[LookupSpec<'_>]) -> Result<(), Status> {
    count_xattrs(specs, |spec| spec.flags)?;
    let misplaced = |spec: &LookupSpec<'_>| {
        spec.opcode == Opcode::Get
            && (spec.flags.contains(PathFlags::XATTR) || !spec.path.is_empty())
    };
    if specs.iter().any(misplaced) {
        return Err(Status::SubdocInvalidCombo);
    }
    Ok(())
}

fn parse_if_needed(
    specs: &[LookupSpec<'_>],
    document: &StoredDocument,
    body: &[u8],
) -> Option<Value> {
    let needed = specs
        .iter()
        .any(|spec| !spec.flags.contains(PathFlags::XATTR) && spec.opcode != Opcode::Get);
    (needed && document.datatype.contains(Datatype::JSON))
        .then(|| serde_json::from_slice(body).ok())
        .flatten()
}

fn read(opcode: Opcode, root: &Value, path: &Path) -> Result<Vec<u8>, Status> {
    match opcode {
        Opcode::SubdocGet | Opcode::Get if path.is_root() => Err(Status::SubdocPathInvalid),
        Opcode::SubdocGet | Opcode::Get => Ok(to_bytes(tree::find(root, path)?)),
        Opcode::SubdocExists => tree::find(root, path).map(|_| Vec::new()),
        Opcode::SubdocGetCount => Ok(tree::count(root, path)?.to_string().into_bytes()),
        _ => Err(Status::SubdocInvalidCombo),
    }
}

fn read_attribute(
    spec: &LookupSpec<'_>,
    document: &StoredDocument,
    stamp: Stamp,
) -> Result<Vec<u8>, Status> {
    let path = Path::parse(spec.path)?;
    let Some(Component::Key(name)) = path.components().first() else {
        return Err(Status::SubdocPathInvalid);
    };
    if attributes::is_virtual(name) {
        let mut root = serde_json::Map::new();
        root.insert(
            name.clone(),
            attributes::virtual_value(name, document, stamp)?,
        );
        return read(spec.opcode, &Value::Object(root), &path);
    }
    let xattrs = document.xattrs.as_ref().ok_or(Status::SubdocPathNotFound)?;
    // Only the attribute that is asked for is copied, not all of them.
    let value = xattrs.get(name).ok_or(Status::SubdocPathNotFound)?;
    let root = Value::Object([(name.clone(), value.clone())].into_iter().collect());
    if spec.flags.contains(PathFlags::BINARY) && spec.opcode == Opcode::SubdocGet {
        return attributes::decode_binary(tree::find(&root, &path)?);
    }
    read(spec.opcode, &root, &path)
}

/// The JSON text of a value.
pub(super) fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value whose keys are strings always serialises")
}
