//! Virtual extended attributes, and macros.
//!
//! `$document` shows a document's metadata as if it were an xattr, `$XTOC` lists the
//! names of the real ones, and `$vbucket` shows the state of the vbucket's clock. They
//! are read-only.
//!
//! A *macro* is a string such as `${Mutation.CAS}`, sent as the value of an xattr. The
//! server replaces it by a value that is known only when it applies the mutation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steadfast_wire::{Datatype, Status};

use crate::store::document::StoredDocument;

/// Stands for the checksum of the body until the body is known. No JSON text that a client can
/// send parses to this by accident.
const CRC_PLACEHOLDER: &str = "\u{0}\u{1}steadfast.value_crc32c\u{0}";

/// Values that macros and virtual attributes refer to, besides the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    /// The CAS of the mutation, or of the document that is read.
    pub cas: u64,
    /// The seqno of the same.
    pub seqno: u64,
    /// The history of the vbucket.
    pub uuid: u64,
    /// The time, in seconds.
    pub now: u64,
}

/// Marks an attribute that holds binary content in base64.
const BINARY_PREFIX: &str = "cb-content-base64-encoded:";

/// The value of an attribute for binary content.
pub(crate) fn encode_binary(content: &[u8]) -> Value {
    format!("{BINARY_PREFIX}{}", STANDARD.encode(content)).into()
}

/// The binary content of an attribute.
pub(crate) fn decode_binary(value: &Value) -> Result<Vec<u8>, Status> {
    value
        .as_str()
        .and_then(|text| STANDARD.decode(text.strip_prefix(BINARY_PREFIX)?).ok())
        .ok_or(Status::SubdocFieldNotBinaryValue)
}

/// Returns whether a value is a macro: the JSON text of a known one, or of any field of the
/// document.
pub(crate) fn is_macro(value: &[u8]) -> bool {
    const OF_MUTATION: [&[u8]; 3] = [
        br#""${Mutation.CAS}""#,
        br#""${Mutation.seqno}""#,
        br#""${Mutation.value_crc32c}""#,
    ];
    let of_document = value.starts_with(br#""${$document"#) && value.ends_with(br#"}""#);
    OF_MUTATION.contains(&value) || of_document
}

/// Returns whether this names a virtual attribute.
pub(crate) fn is_virtual(name: &str) -> bool {
    name.starts_with('$')
}

/// The value of a virtual attribute.
pub(crate) fn virtual_value(
    name: &str,
    document: &StoredDocument,
    stamp: Stamp,
) -> Result<Value, Status> {
    match name {
        "$document" => Ok(document_attribute(document, stamp)),
        "$vbucket" => Ok(json!({"HLC": {"now": stamp.now.to_string(), "mode": "real"}})),
        "$XTOC" => Ok(document
            .xattrs
            .iter()
            .flat_map(|xattrs| xattrs.keys())
            .map(|name| Value::from(name.as_str()))
            .collect()),
        _ => Err(Status::SubdocXattrUnknownVattr),
    }
}

/// Replaces a macro by its value. The checksum is filled in later, by [`fill_in_checksum`].
pub(crate) fn expand_macro(
    value: &Value,
    document: &StoredDocument,
    stamp: Stamp,
) -> Result<Value, Status> {
    let text = value.as_str().ok_or(Status::SubdocXattrUnknownMacro)?;
    let name = text
        .strip_prefix("${")
        .and_then(|text| text.strip_suffix('}'))
        .ok_or(Status::SubdocXattrUnknownMacro)?;
    match name {
        // The server writes this CAS with its bytes reversed, and clients count on it.
        "Mutation.CAS" => Ok(hex(stamp.cas.swap_bytes())),
        "Mutation.seqno" => Ok(hex(stamp.seqno)),
        "Mutation.value_crc32c" => Ok(Value::from(CRC_PLACEHOLDER)),
        "$document" => Ok(document_attribute(document, stamp)),
        _ => match name.strip_prefix("$document.") {
            Some("value_crc32c") => Ok(Value::from(CRC_PLACEHOLDER)),
            Some(field) => document_attribute(document, stamp)
                .get(field)
                .cloned()
                .ok_or(Status::SubdocXattrUnknownMacro),
            None => Err(Status::SubdocXattrUnknownMacro),
        },
    }
}

/// Puts the checksum of the body where a macro asked for it.
pub(crate) fn fill_in_checksum(value: &mut Value, body: &[u8]) {
    match value {
        Value::String(text) if text == CRC_PLACEHOLDER => *text = checksum(body),
        Value::Array(array) => array
            .iter_mut()
            .for_each(|item| fill_in_checksum(item, body)),
        Value::Object(object) => {
            object
                .values_mut()
                .for_each(|item| fill_in_checksum(item, body));
        }
        _ => {}
    }
}

fn document_attribute(document: &StoredDocument, stamp: Stamp) -> Value {
    // A document that cannot be inflated cannot be stored either.
    let body = document.inflated().unwrap_or_default();
    let mut datatype = Vec::new();
    if document.datatype.contains(Datatype::JSON) {
        datatype.push("json");
    } else {
        datatype.push("raw");
    }
    if document.datatype.contains(Datatype::SNAPPY) {
        datatype.push("snappy");
    }
    if document.xattrs.is_some() {
        datatype.push("xattr");
    }
    json!({
        "CAS": hex(stamp.cas),
        "vbucket_uuid": hex(stamp.uuid),
        "seqno": hex(stamp.seqno),
        "revid": document.revision.to_string(),
        "exptime": document.expiry,
        "value_bytes": body.len(),
        "datatype": datatype,
        "deleted": document.deleted,
        "last_modified": document.modified.to_string(),
        "flags": document.flags,
        "value_crc32c": checksum(&body),
    })
}

fn checksum(body: &[u8]) -> String {
    format!("{:#010x}", crc32c::crc32c(body))
}

fn hex(number: u64) -> Value {
    Value::from(format!("{number:#018x}"))
}
