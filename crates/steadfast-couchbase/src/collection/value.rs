//! Documents as bytes, and their formats.
//!
//! A server stores 32 bits of flags with each document. SDKs agree on the format
//! in the highest byte (SDK RFC 0020), so that a reader knows whether it is JSON.

use bytes::Bytes;
use serde::Serialize;
use steadfast_wire::Datatype;

use crate::error::{Error, ErrorKind, Result};
use crate::kv::operation::KvOperation;
use crate::kv::value::Value;

/// The format of a document, by its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JSON.
    Json,
    /// Bytes of any kind.
    Binary,
    /// Text in UTF-8 that is not JSON.
    Text,
    /// Something that one SDK or application alone understands.
    Private,
    /// The flags do not say, as for counters and very old clients.
    Unknown,
}

impl Format {
    const JSON_FLAGS: u32 = 0x0200_0000;
    const BINARY_FLAGS: u32 = 0x0300_0000;
    const TEXT_FLAGS: u32 = 0x0400_0000;
    const PRIVATE_FLAGS: u32 = 0x0100_0000;

    /// The format that flags stand for.
    pub const fn from_flags(flags: u32) -> Self {
        // The upper half of the byte is for a compression that is not in use.
        match flags & 0x0f00_0000 {
            Self::JSON_FLAGS => Self::Json,
            Self::BINARY_FLAGS => Self::Binary,
            Self::TEXT_FLAGS => Self::Text,
            Self::PRIVATE_FLAGS => Self::Private,
            _ => Self::Unknown,
        }
    }

    /// The flags that stand for a format.
    pub const fn flags(self) -> u32 {
        match self {
            Self::Json => Self::JSON_FLAGS,
            Self::Binary => Self::BINARY_FLAGS,
            Self::Text => Self::TEXT_FLAGS,
            Self::Private => Self::PRIVATE_FLAGS,
            Self::Unknown => 0,
        }
    }
}

/// A document as bytes, for what is not JSON or is encoded already.
///
/// ```
/// use steadfast_couchbase::collection::Raw;
///
/// let picture = Raw::binary(vec![0x89, b'P', b'N', b'G']);
/// let letter = Raw::text("Dear Ada");
/// let encoded = Raw::json(r#"{"name":"Ada"}"#);
/// let own = Raw::with_flags("…", 0x0100_0001);
/// # let _ = (picture, letter, encoded, own);
/// ```
#[derive(Clone, Debug)]
pub struct Raw {
    pub(super) bytes: Value,
    pub(super) flags: u32,
}

impl Raw {
    /// Bytes of any kind.
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::with_flags(bytes, Format::Binary.flags())
    }

    /// Text that is not JSON.
    pub fn text(text: impl Into<String>) -> Self {
        Self::with_flags(text.into(), Format::Text.flags())
    }

    /// JSON that is encoded already. It is sent as it is.
    pub fn json(json: impl Into<Bytes>) -> Self {
        Self::with_flags(json, Format::Json.flags())
    }

    /// Bytes with custom flags, which the reader must understand.
    pub fn with_flags(bytes: impl Into<Bytes>, flags: u32) -> Self {
        Self {
            bytes: Value::Shared(bytes.into()),
            flags,
        }
    }

    pub(super) fn encoded<T: Serialize + ?Sized>(value: &T) -> Encoded {
        let bytes = Value::Owned(serde_json::to_vec(value)?);
        let flags = Format::Json.flags();
        Ok(Self { bytes, flags })
    }

    pub(super) fn datatype(&self) -> Datatype {
        match Format::from_flags(self.flags) {
            Format::Json => Datatype::JSON,
            Format::Binary | Format::Text | Format::Private | Format::Unknown => Datatype::RAW,
        }
    }
}

/// A document, if it could be encoded.
pub(super) type Encoded = Result<Raw, serde_json::Error>;

/// The value could not be encoded. The error speaks of its type, and does not
/// quote it.
#[cold]
pub(super) fn unencodable(operation: KvOperation, error: &serde_json::Error) -> Error {
    Error::new(ErrorKind::EncodingFailure, operation.name()).because(error.to_string())
}

/// Reads JSON. The error does not quote it.
pub(super) fn decode<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Data => "the JSON is not what is asked for",
            serde_json::error::Category::Syntax
            | serde_json::error::Category::Eof
            | serde_json::error::Category::Io => "it is not JSON",
        };
        let problem = format!("{what}, at line {line}, column {column}");
        Error::new(ErrorKind::DecodingFailure, "content").because(problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_flags_convert_both_ways() {
        for format in [
            Format::Json,
            Format::Binary,
            Format::Text,
            Format::Private,
            Format::Unknown,
        ] {
            assert_eq!(Format::from_flags(format.flags()), format);
            assert_eq!(Format::from_flags(format.flags() | 0x00ff_ffff), format);
        }
        assert_eq!(Format::from_flags(0x0500_0000), Format::Unknown);
    }
}
