//! One document, live or deleted.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};
use steadfast_wire::{Datatype, Status};

use super::expiry;
use crate::clock::Now;

/// The largest value a document may have, uncompressed: twenty mebibytes.
pub(crate) const MAX_VALUE_BYTES: usize = 20 * 1024 * 1024;
/// The most that the xattrs of a document may have together: one mebibyte.
pub(crate) const MAX_XATTR_BYTES: usize = 1024 * 1024;
/// What a document costs beyond its key and value, for the bucket's quota.
const OVERHEAD_BYTES: usize = 128;

/// The flags that SDKs give to JSON.
pub(crate) const JSON_FLAGS: u32 = 0x0200_0000;

/// The extended attributes of a document: a JSON value for each name.
pub(crate) type Xattrs = Map<String, Value>;

/// A document as one copy of a vbucket holds it.
///
/// A deleted document stays for a while as a tombstone, because its CAS, its revision and its
/// system xattrs can still be asked for.
#[derive(Debug, Clone, Default)]
pub struct StoredDocument {
    /// The body as it was sent: compressed where [`Datatype::SNAPPY`] says so.
    pub value: Bytes,
    /// Whether the body is JSON, and whether it is compressed. Never has the xattr bit.
    pub datatype: Datatype,
    /// Opaque to the server; SDKs put the format here.
    pub flags: u32,
    /// Absolute Unix time in seconds; zero is never.
    pub expiry: u32,
    /// Changes with every mutation, and with every lock.
    pub cas: u64,
    /// The place of the last mutation in the history of the vbucket.
    pub seqno: u64,
    /// The number of changes since its creation.
    pub revision: u64,
    /// When it was changed, as Unix time in seconds.
    pub modified: u64,
    /// Extended attributes, shared between the copies.
    pub xattrs: Option<Arc<Xattrs>>,
    /// Whether this is a tombstone.
    pub deleted: bool,
}

impl StoredDocument {
    /// Returns whether a plain read finds it.
    pub(crate) fn is_live(&self, now: Now) -> bool {
        !self.deleted && !expiry::has_passed(self.expiry, now)
    }

    /// The body without compression.
    pub(crate) fn inflated(&self) -> Result<Bytes, Status> {
        if self.datatype.contains(Datatype::SNAPPY) {
            inflate(&self.value)
        } else {
            Ok(self.value.clone())
        }
    }

    /// The bytes of the document in the bucket's quota.
    pub(crate) fn cost(&self, key: &[u8]) -> usize {
        let xattrs = self.xattrs.as_ref().map_or(0, |xattrs| weight(xattrs));
        key.len() + self.value.len() + xattrs + OVERHEAD_BYTES
    }

    /// Returns whether a transaction has staged an insert here: a tombstone with attributes that
    /// are not of the system.
    pub(crate) fn is_staged_insert(&self) -> bool {
        let xattrs = self.xattrs.as_ref().filter(|_| self.deleted);
        xattrs.is_some_and(|xattrs| xattrs.keys().any(|name| !name.starts_with('_')))
    }

    /// What remains of the xattrs when the document is deleted: those of the system, whose names
    /// start with an underscore.
    pub(crate) fn system_xattrs(&self) -> Option<Arc<Xattrs>> {
        let xattrs = self.xattrs.as_ref()?;
        let kept: Xattrs = xattrs
            .iter()
            .filter(|(name, _)| name.starts_with('_'))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        (!kept.is_empty()).then(|| Arc::new(kept))
    }
}

/// What xattrs take up, about: their text, and something for each value.
pub(crate) fn weight(xattrs: &Xattrs) -> usize {
    xattrs
        .iter()
        .map(|(name, value)| name.len() + value_weight(value))
        .sum()
}

/// What a value takes up, about.
pub(crate) fn value_weight(value: &Value) -> usize {
    OVERHEAD_BYTES / 4
        + match value {
            Value::String(text) => text.len(),
            Value::Array(array) => array.iter().map(value_weight).sum(),
            Value::Object(object) => weight(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// A validated body with its datatype.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentBody {
    /// The bytes to store, compressed if they came so.
    pub value: Bytes,
    /// The datatype.
    pub datatype: Datatype,
}

impl DocumentBody {
    /// Checks a value from the wire: compressed ones must inflate, within bounds, and whether it
    /// is JSON is for the server to say, whatever the client claimed.
    pub(crate) fn from_wire(value: &[u8], sent_as: Datatype) -> Result<Self, Status> {
        let compressed = sent_as.contains(Datatype::SNAPPY);
        let is_json = if compressed {
            is_json(&inflate(value)?)
        } else if value.len() > MAX_VALUE_BYTES {
            return Err(Status::TooBig);
        } else {
            is_json(value)
        };
        let mut datatype = if is_json {
            Datatype::JSON
        } else {
            Datatype::RAW
        };
        if compressed {
            datatype |= Datatype::SNAPPY;
        }
        // The frame's buffer is large and shared; keeping a slice of it would keep all of it.
        Ok(Self {
            value: Bytes::copy_from_slice(value),
            datatype,
        })
    }

    /// A body that the server made itself.
    pub(crate) fn plain(value: Vec<u8>) -> Result<Self, Status> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(Status::TooBig);
        }
        let datatype = if is_json(&value) {
            Datatype::JSON
        } else {
            Datatype::RAW
        };
        Ok(Self {
            value: value.into(),
            datatype,
        })
    }
}

/// Inflates a compressed value; one that is broken or too large is refused before it is inflated.
pub(crate) fn inflate(value: &[u8]) -> Result<Bytes, Status> {
    match snap::raw::decompress_len(value) {
        Ok(len) if len <= MAX_VALUE_BYTES => snap::raw::Decoder::new()
            .decompress_vec(value)
            .map(Bytes::from)
            .map_err(|_| Status::InvalidArguments),
        Ok(_) => Err(Status::TooBig),
        Err(_) => Err(Status::InvalidArguments),
    }
}

/// Returns whether bytes are one JSON value.
pub(crate) fn is_json(value: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_decides_what_is_json() {
        let claimed = DocumentBody::from_wire(b"not json", Datatype::JSON).unwrap();
        assert_eq!(claimed.datatype, Datatype::RAW);
        let found = DocumentBody::from_wire(b"{\"a\":1}", Datatype::RAW).unwrap();
        assert_eq!(found.datatype, Datatype::JSON);
    }

    #[test]
    fn compressed_values_are_kept_compressed_and_checked() {
        let packed = snap::raw::Encoder::new()
            .compress_vec(b"{\"a\":1}")
            .unwrap();
        let body = DocumentBody::from_wire(&packed, Datatype::SNAPPY).unwrap();
        assert_eq!(body.datatype, Datatype::JSON | Datatype::SNAPPY);
        assert_eq!(body.value, packed);
        let garbage = DocumentBody::from_wire(b"\xff\xff\xff\xff\xff\xff", Datatype::SNAPPY);
        assert_eq!(garbage.unwrap_err(), Status::InvalidArguments);
    }

    #[test]
    fn a_compressed_value_that_is_too_large_is_rejected_without_inflating_it() {
        // The length prefix says 32 MiB; nothing follows.
        let bomb = [0x80, 0x80, 0x80, 0x10];
        assert_eq!(
            DocumentBody::from_wire(&bomb, Datatype::SNAPPY).unwrap_err(),
            Status::TooBig
        );
        let large = vec![0; MAX_VALUE_BYTES + 1];
        assert_eq!(
            DocumentBody::from_wire(&large, Datatype::RAW).unwrap_err(),
            Status::TooBig
        );
    }

    #[test]
    fn a_tombstone_keeps_system_xattrs_only() {
        let mut xattrs = Xattrs::new();
        xattrs.insert("_sync".into(), 1.into());
        xattrs.insert("mine".into(), 2.into());
        let document = StoredDocument {
            xattrs: Some(Arc::new(xattrs)),
            ..StoredDocument::default()
        };
        let kept = document.system_xattrs().unwrap();
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["_sync"]);
    }
}
