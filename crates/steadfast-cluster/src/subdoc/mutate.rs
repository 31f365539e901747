//! Changing several parts of one document, all or nothing.
//!
//! The parts change a copy of the body and of the xattrs, one after the other. If one
//! fails, the request fails with the index of that part, and the document is unchanged.
//!
//! Xattrs come first in a request. A macro that needs the checksum of the body is
//! therefore replaced last, when the body is final.

use std::sync::Arc;

use serde_json::{Map, Value};
use steadfast_wire::subdoc::{MutationSpec, PathFlags};
use steadfast_wire::{Datatype, Opcode, Status};

use super::attributes::{self, Stamp};
use super::lookup::{count_xattrs, to_bytes};
use super::path::{Component, Path};
use super::tree::{self, ArrayEnd};
use crate::store::document::{DocumentBody, MAX_XATTR_BYTES, StoredDocument, weight};

/// The result of a mutation.
#[derive(Debug)]
pub(crate) struct Mutated {
    /// The document to write.
    pub document: StoredDocument,
    /// The values that parts gave back: which part, and the JSON text.
    pub values: Vec<(u8, Vec<u8>)>,
}

/// Why a mutation was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MutateError {
    /// This part failed.
    At(u8, Status),
    /// The whole request is invalid or impossible.
    Whole(Status),
}

impl From<Status> for MutateError {
    fn from(status: Status) -> Self {
        Self::Whole(status)
    }
}

/// The body that a document starts with when a mutation creates it.
pub(crate) fn initial_body(specs: &[MutationSpec<'_>]) -> Value {
    let starts_with_array = specs
        .iter()
        .find(|spec| !spec.flags.contains(PathFlags::XATTR))
        .is_some_and(|spec| {
            let pushes = matches!(
                spec.opcode,
                Opcode::SubdocArrayPushLast
                    | Opcode::SubdocArrayPushFirst
                    | Opcode::SubdocArrayAddUnique
            );
            spec.path.starts_with(b"[") || (spec.path.is_empty() && pushes)
        });
    if starts_with_array {
        Value::Array(Vec::new())
    } else {
        Value::Object(Map::new())
    }
}

/// Applies all parts of a mutation to a document.
pub(crate) fn run(
    specs: &[MutationSpec<'_>],
    document: &StoredDocument,
    stamp: Stamp,
) -> Result<Mutated, MutateError> {
    check_combination(specs)?;
    let mut state = DocumentEdit {
        xattrs: Value::Object(document.xattrs.as_deref().cloned().unwrap_or_default()),
        body: None,
        document: document.clone(),
        stamp,
    };
    let mut values = Vec::new();
    for (index, spec) in (0u8..).zip(specs) {
        match state.apply(spec) {
            Ok(Some(value)) => values.push((index, value)),
            Ok(None) => {}
            Err(error) => return Err(MutateError::At(index, error)),
        }
    }
    Ok(Mutated {
        document: state.finish()?,
        values,
    })
}

fn check_combination(specs: &[MutationSpec<'_>]) -> Result<(), Status> {
    let body_specs = &specs[count_xattrs(specs, |spec| spec.flags)?..];
    let for_xattrs = PathFlags::EXPAND_MACROS | PathFlags::BINARY;
    if body_specs
        .iter()
        .any(|spec| spec.flags.intersects(for_xattrs))
    {
        return Err(Status::SubdocXattrInvalidFlagCombo);
    }
    let whole = |spec: &MutationSpec<'_>| matches!(spec.opcode, Opcode::Set | Opcode::Delete);
    // An operation on the whole body leaves nothing for another one to do.
    let misplaced = specs.iter().any(|spec| {
        whole(spec) && (spec.flags.contains(PathFlags::XATTR) || !spec.path.is_empty())
    });
    let from_xattr = |spec: &MutationSpec<'_>| spec.opcode == Opcode::SubdocReplaceBodyWithXattr;
    if misplaced
        || body_specs.iter().any(from_xattr)
        || (body_specs.iter().any(whole) && body_specs.len() > 1)
    {
        return Err(Status::SubdocInvalidCombo);
    }
    Ok(())
}

struct DocumentEdit {
    xattrs: Value,
    /// Parsed when the first part needs it.
    body: Option<Value>,
    document: StoredDocument,
    stamp: Stamp,
}

impl DocumentEdit {
    fn apply(&mut self, spec: &MutationSpec<'_>) -> Result<Option<Vec<u8>>, Status> {
        match spec.opcode {
            Opcode::Set => {
                self.set_body(spec.value.to_vec())?;
                Ok(None)
            }
            Opcode::Delete => {
                self.document.deleted = true;
                Ok(None)
            }
            Opcode::SubdocReplaceBodyWithXattr => {
                let found = tree::find(&self.xattrs, &Path::parse(spec.path)?)?;
                let body = match spec.flags.contains(PathFlags::BINARY) {
                    true => attributes::decode_binary(found)?,
                    false => to_bytes(found),
                };
                self.set_body(body)?;
                Ok(None)
            }
            _ => {
                let path = Path::parse(spec.path)?;
                if spec.flags.contains(PathFlags::XATTR) {
                    self.check_attribute(&path)?;
                }
                let expanded = self.expanded(spec)?;
                let value = expanded.as_deref().unwrap_or(spec.value);
                let root = if spec.flags.contains(PathFlags::XATTR) {
                    &mut self.xattrs
                } else {
                    self.body()?
                };
                apply_at(spec, root, &path, value)
            }
        }
    }

    fn check_attribute(&self, path: &Path) -> Result<(), Status> {
        match path.components().first() {
            Some(Component::Key(name)) if attributes::is_virtual(name) => {
                Err(Status::SubdocXattrCannotModifyVattr)
            }
            Some(Component::Key(_)) => Ok(()),
            _ => Err(Status::SubdocPathInvalid),
        }
    }

    fn expanded(&self, spec: &MutationSpec<'_>) -> Result<Option<Vec<u8>>, Status> {
        if spec.flags.contains(PathFlags::BINARY) {
            let value = attributes::encode_binary(spec.value);
            return Ok(Some(to_bytes(&value)));
        }
        if !spec.flags.contains(PathFlags::EXPAND_MACROS) {
            return Ok(None);
        }
        let value = tree::parse_value(spec.value)?;
        attributes::expand_macro(&value, &self.document, self.stamp)
            .map(|value| Some(to_bytes(&value)))
    }

    fn body(&mut self) -> Result<&mut Value, Status> {
        if self.document.deleted {
            return Err(Status::SubdocDeletedDocumentCannotHaveValue);
        }
        if self.body.is_none() {
            if !self.document.datatype.contains(Datatype::JSON) {
                return Err(Status::SubdocDocNotJson);
            }
            let bytes = self
                .document
                .inflated()
                .map_err(|_| Status::SubdocDocNotJson)?;
            let parsed = serde_json::from_slice(&bytes).map_err(|_| Status::SubdocDocNotJson)?;
            self.body = Some(parsed);
        }
        self.body.as_mut().ok_or(Status::SubdocDocNotJson)
    }

    fn set_body(&mut self, value: Vec<u8>) -> Result<(), Status> {
        if self.document.deleted {
            return Err(Status::SubdocDeletedDocumentCannotHaveValue);
        }
        let body = DocumentBody::plain(value).map_err(|_| Status::SubdocValueCannotInsert)?;
        self.document.value = body.value;
        self.document.datatype = body.datatype;
        self.body = None;
        Ok(())
    }

    fn finish(mut self) -> Result<StoredDocument, Status> {
        if let Some(body) = self.body.take() {
            let body = DocumentBody::plain(to_bytes(&body))?;
            self.document.value = body.value;
            self.document.datatype = body.datatype;
        }
        attributes::fill_in_checksum(&mut self.xattrs, &self.document.inflated()?);
        self.document.xattrs = match self.xattrs {
            Value::Object(xattrs) if weight(&xattrs) > MAX_XATTR_BYTES => {
                return Err(Status::TooBig);
            }
            Value::Object(xattrs) if !xattrs.is_empty() => Some(Arc::new(xattrs)),
            _ => None,
        };
        Ok(self.document)
    }
}

fn apply_at(
    spec: &MutationSpec<'_>,
    root: &mut Value,
    path: &Path,
    value: &[u8],
) -> Result<Option<Vec<u8>>, Status> {
    let create = spec.flags.contains(PathFlags::CREATE_PARENTS);
    match spec.opcode {
        Opcode::SubdocDictAdd => {
            tree::dict_set(root, path, tree::parse_value(value)?, create, false)?;
        }
        Opcode::SubdocDictUpsert => {
            tree::dict_set(root, path, tree::parse_value(value)?, create, true)?;
        }
        Opcode::SubdocDelete => tree::remove(root, path)?,
        Opcode::SubdocReplace => tree::replace(root, path, tree::parse_value(value)?)?,
        Opcode::SubdocArrayPushLast => {
            tree::push(
                root,
                path,
                tree::parse_values(value)?,
                ArrayEnd::Back,
                create,
            )?;
        }
        Opcode::SubdocArrayPushFirst => {
            tree::push(
                root,
                path,
                tree::parse_values(value)?,
                ArrayEnd::Front,
                create,
            )?;
        }
        Opcode::SubdocArrayInsert => tree::insert(root, path, tree::parse_values(value)?)?,
        Opcode::SubdocArrayAddUnique => {
            tree::add_unique(root, path, tree::parse_value(value)?, create)?;
        }
        Opcode::SubdocCounter => {
            let sum = tree::counter(root, path, tree::parse_delta(value)?, create)?;
            return Ok(Some(sum.to_string().into_bytes()));
        }
        _ => return Err(Status::SubdocInvalidCombo),
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;

    const STAMP: Stamp = Stamp {
        cas: 0x10,
        seqno: 2,
        uuid: 3,
        now: 4,
    };

    fn document(body: &'static str) -> StoredDocument {
        StoredDocument {
            value: Bytes::from_static(body.as_bytes()),
            datatype: Datatype::JSON,
            ..StoredDocument::default()
        }
    }

    fn spec<'a>(opcode: Opcode, path: &'a str, value: &'a str) -> MutationSpec<'a> {
        MutationSpec {
            opcode,
            flags: PathFlags::empty(),
            path: path.as_bytes(),
            value: value.as_bytes(),
        }
    }

    fn xattr<'a>(opcode: Opcode, path: &'a str, value: &'a str) -> MutationSpec<'a> {
        MutationSpec {
            flags: PathFlags::XATTR,
            ..spec(opcode, path, value)
        }
    }

    #[test]
    fn macros_in_attributes_use_the_new_body() {
        let expand = |path, text| MutationSpec {
            flags: PathFlags::XATTR | PathFlags::EXPAND_MACROS,
            ..xattr(Opcode::SubdocDictUpsert, path, text)
        };
        let specs = [
            expand("cas", r#""${Mutation.CAS}""#),
            expand("crc", r#""${Mutation.value_crc32c}""#),
            spec(Opcode::Set, "", "123456789"),
        ];
        let mutated = run(&specs, &document("{}"), STAMP).unwrap();
        let xattrs = Value::Object((*mutated.document.xattrs.unwrap()).clone());
        assert_eq!(
            xattrs,
            json!({"cas": "0x1000000000000000", "crc": "0xe3069283"})
        );
        assert_eq!(mutated.document.value, "123456789");
    }

    #[test]
    fn attributes_are_bounded_and_count_for_the_quota() {
        let text = format!("{:?}", "x".repeat(900 * 1024));
        let one = [xattr(Opcode::SubdocDictAdd, "x", &text)];
        let first = run(&one, &document("{}"), STAMP).unwrap().document;
        assert!(first.cost(b"k") > 900 * 1024);
        let two = [xattr(Opcode::SubdocDictAdd, "y", &text)];
        let error = run(&two, &first, STAMP).unwrap_err();
        assert_eq!(error, MutateError::Whole(Status::TooBig));
    }
}
