//! Reading several parts of one document.

use serde_json::Value;
use steadfast_wire::{Datatype, Status};

use super::attributes::{self, Stamp};
use super::path::{Component, Path};
use super::tree;
use crate::store::document::StoredDocument;

/// The most paths in one request.
pub(crate) const MAX_PATHS: usize = 16;

/// The operation at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookupOp {
    /// The value.
    Get,
    /// Nothing but whether there is one.
    Exists,
    /// The number of its elements.
    Count,
    /// The whole body; its path is empty.
    GetDocument,
}

/// One part of a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookupSpec<'a> {
    /// The operation.
    pub op: LookupOp,
    /// Whether the path is into the xattrs.
    pub xattr: bool,
    /// Where.
    pub path: &'a [u8],
}

/// Does the parts of a lookup, each with a result of its own.
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
        .map(|spec| match spec.op {
            LookupOp::GetDocument => Ok(body.to_vec()),
            _ if spec.xattr => read_attribute(spec, document, stamp),
            _ => match &parsed {
                Some(root) => read(spec.op, root, &Path::parse(spec.path)?),
                None => Err(Status::SubdocDocNotJson),
            },
        })
        .collect())
}

fn check_combination(specs: &[LookupSpec<'_>]) -> Result<(), Status> {
    if specs.is_empty() || specs.len() > MAX_PATHS {
        return Err(Status::SubdocInvalidCombo);
    }
    let first_body = specs
        .iter()
        .position(|spec| !spec.xattr)
        .unwrap_or(specs.len());
    if specs[first_body..].iter().any(|spec| spec.xattr) {
        return Err(Status::SubdocInvalidXattrOrder);
    }
    let misplaced = |spec: &LookupSpec<'_>| {
        spec.op == LookupOp::GetDocument && (spec.xattr || !spec.path.is_empty())
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
        .any(|spec| !spec.xattr && spec.op != LookupOp::GetDocument);
    (needed && document.datatype.contains(Datatype::JSON))
        .then(|| serde_json::from_slice(body).ok())
        .flatten()
}

fn read(op: LookupOp, root: &Value, path: &Path) -> Result<Vec<u8>, Status> {
    match op {
        LookupOp::Get | LookupOp::GetDocument if path.is_root() => Err(Status::SubdocPathInvalid),
        LookupOp::Get | LookupOp::GetDocument => Ok(to_bytes(tree::find(root, path)?)),
        LookupOp::Exists => tree::find(root, path).map(|_| Vec::new()),
        LookupOp::Count => Ok(tree::count(root, path)?.to_string().into_bytes()),
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
        return read(spec.op, &Value::Object(root), &path);
    }
    let xattrs = document.xattrs.as_ref().ok_or(Status::SubdocPathNotFound)?;
    // Only the attribute that is asked for is copied, not all of them.
    let value = xattrs.get(name).ok_or(Status::SubdocPathNotFound)?;
    let root = Value::Object([(name.clone(), value.clone())].into_iter().collect());
    read(spec.op, &root, &path)
}

/// The JSON text of a value.
pub(super) fn to_bytes(value: &Value) -> Vec<u8> {
    serde_json::to_vec(value).expect("a JSON value whose keys are strings always serialises")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;
    use std::sync::Arc;

    const STAMP: Stamp = Stamp {
        cas: 1,
        seqno: 2,
        uuid: 3,
        now: 4,
    };

    fn document() -> StoredDocument {
        let xattrs = json!({"meta": {"a": [1, 2]}}).as_object().unwrap().clone();
        StoredDocument {
            value: Bytes::from_static(br#"{"a":{"b":[1,"x"]}}"#),
            datatype: Datatype::JSON,
            xattrs: Some(Arc::new(xattrs)),
            ..StoredDocument::default()
        }
    }

    fn spec(op: LookupOp, xattr: bool, path: &str) -> LookupSpec<'_> {
        LookupSpec {
            op,
            xattr,
            path: path.as_bytes(),
        }
    }

    #[test]
    fn every_part_has_its_own_result() {
        let specs = [
            spec(LookupOp::Get, true, "meta.a[-1]"),
            spec(LookupOp::Get, true, "none"),
            spec(LookupOp::Get, true, "$document.revid"),
            spec(LookupOp::Get, false, "a.b"),
            spec(LookupOp::Exists, false, "a.c"),
            spec(LookupOp::Exists, false, "a"),
            spec(LookupOp::Count, false, "a.b"),
            spec(LookupOp::GetDocument, false, ""),
            spec(LookupOp::Get, false, "a["),
        ];
        let results = run(&specs, &document(), STAMP).unwrap();
        let expected: [Result<&[u8], _>; 9] = [
            Ok(b"2"),
            Err(Status::SubdocPathNotFound),
            Ok(b"\"0\""),
            Ok(b"[1,\"x\"]"),
            Err(Status::SubdocPathNotFound),
            Ok(b""),
            Ok(b"2"),
            Ok(br#"{"a":{"b":[1,"x"]}}"#),
            Err(Status::SubdocPathInvalid),
        ];
        for (result, expected) in results.iter().zip(expected) {
            assert_eq!(result.as_deref(), expected.as_deref());
        }
    }

    #[test]
    fn the_toc_lists_the_attributes() {
        let results = run(&[spec(LookupOp::Get, true, "$XTOC")], &document(), STAMP).unwrap();
        assert_eq!(results[0].as_deref(), Ok(&b"[\"meta\"]"[..]));
    }

    #[test]
    fn requests_that_make_no_sense_fail_as_a_whole() {
        let run = |specs: &[LookupSpec<'_>]| run(specs, &document(), STAMP).unwrap_err();
        assert_eq!(run(&[]), Status::SubdocInvalidCombo);
        assert_eq!(
            run(&[spec(LookupOp::Get, false, "a"); 17]),
            Status::SubdocInvalidCombo
        );
        assert_eq!(
            run(&[
                spec(LookupOp::Get, false, "a"),
                spec(LookupOp::Get, true, "b")
            ]),
            Status::SubdocInvalidXattrOrder
        );
        assert_eq!(
            run(&[spec(LookupOp::GetDocument, true, "")]),
            Status::SubdocInvalidCombo
        );
    }

    #[test]
    fn a_body_that_is_no_json_has_no_paths() {
        let mut document = document();
        document.datatype = Datatype::RAW;
        let results = run(
            &[
                spec(LookupOp::Get, true, "meta.a[0]"),
                spec(LookupOp::Get, false, "a"),
            ],
            &document,
            STAMP,
        )
        .unwrap();
        assert_eq!(results[0].as_deref(), Ok(&b"1"[..]));
        assert_eq!(results[1], Err(Status::SubdocDocNotJson));
    }
}
