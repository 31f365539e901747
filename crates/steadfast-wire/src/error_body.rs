//! Error bodies: details of an error beyond its status (RFC 0028).

use serde::{Deserialize, Serialize};

use crate::{Datatype, DecodeError, Frame, hex};

/// The body of a response with an error status, if the datatype says that it is JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorBody {
    /// The description, for people.
    pub context: Option<String>,
    /// Under which name the server has logged it.
    pub reference: Option<String>,
    /// The manifest in which a scope or collection was not found; comes with `UnknownCollection`
    /// and `UnknownScope`.
    pub manifest_uid: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Json {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<JsonError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    manifest_uid: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct JsonError {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl ErrorBody {
    /// The longest body that is read, decompressed. Servers send a few hundred bytes.
    pub const MAX_LEN: usize = 1024 * 1024;

    /// Decodes the body of a response. `None` if it has no details: without the JSON bit the body must be
    /// ignored.
    ///
    /// # Errors
    /// If the body is not what the datatype says. The status stands nevertheless.
    pub fn of(response: &Frame) -> Result<Option<Self>, DecodeError> {
        let is_json = response.header().datatype.contains(Datatype::JSON);
        if !is_json || response.value().is_empty() {
            return Ok(None);
        }
        let value = response
            .plain_value(Self::MAX_LEN)
            .map_err(|e| malformed(e.to_string()))?;
        Self::parse(&value).map(Some)
    }

    /// Reads the JSON. Fields that this version does not know are ignored.
    ///
    /// # Errors
    /// If it is not such JSON.
    pub fn parse(json: &[u8]) -> Result<Self, DecodeError> {
        if json.len() > Self::MAX_LEN {
            return Err(malformed(format!("it has {} bytes", json.len())));
        }
        let json: Json = serde_json::from_slice(json).map_err(|e| malformed(e.to_string()))?;
        let error = json.error.unwrap_or_default();
        Ok(Self {
            context: error.context,
            reference: error.reference,
            manifest_uid: json
                .manifest_uid
                .map(|uid| hex::parse("manifest_uid", &uid))
                .transpose()?,
        })
    }

    /// The JSON for this body, to be sent with the datatype [`Datatype::JSON`].
    pub fn to_json(&self) -> Vec<u8> {
        let says_error = self.context.is_some() || self.reference.is_some();
        let json = Json {
            error: says_error.then(|| JsonError {
                context: self.context.clone(),
                reference: self.reference.clone(),
            }),
            manifest_uid: self.manifest_uid.map(hex::write),
        };
        serde_json::to_vec(&json).expect("text always makes JSON")
    }
}

fn malformed(problem: String) -> DecodeError {
    DecodeError::Json {
        what: "the body of an error",
        problem,
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::*;
    use crate::{Decoded, FrameBuilder, FrameDecoder, Opcode, Status};

    fn response(datatype: Datatype, value: &[u8]) -> Frame {
        let mut buffer = BytesMut::new();
        FrameBuilder::response(Opcode::Get, Status::UnknownCollection)
            .datatype(datatype)
            .value(value)
            .encode(&mut buffer)
            .unwrap();
        let Ok(Decoded::Frame(frame)) = FrameDecoder::from_server().decode(&mut buffer) else {
            panic!("a whole frame was written");
        };
        frame
    }

    #[test]
    fn the_parts_of_a_body_are_read_and_written() {
        let json = br#"{"error":{"context":"no such thing","ref":"abc-1"},"manifest_uid":"1f"}"#;
        let body = ErrorBody::of(&response(Datatype::JSON, json))
            .unwrap()
            .unwrap();
        assert_eq!(body.context.as_deref(), Some("no such thing"));
        assert_eq!(body.reference.as_deref(), Some("abc-1"));
        assert_eq!(body.manifest_uid, Some(0x1f));
        assert_eq!(body.to_json(), json);
    }

    #[test]
    fn a_body_that_is_not_marked_as_json_is_ignored() {
        assert_eq!(
            ErrorBody::of(&response(Datatype::RAW, b"Not found")),
            Ok(None)
        );
        assert_eq!(ErrorBody::of(&response(Datatype::JSON, b"")), Ok(None));
    }

    #[test]
    fn a_compressed_body_is_read_too() {
        let json = br#"{"manifest_uid":"2"}"#;
        let value = crate::snappy::Compressor::new(0, 10.0)
            .compress(json)
            .unwrap();
        let body = ErrorBody::of(&response(Datatype::JSON | Datatype::SNAPPY, &value)).unwrap();
        assert_eq!(body.unwrap().manifest_uid, Some(2));
        assert!(ErrorBody::of(&response(Datatype::JSON | Datatype::SNAPPY, json)).is_err());
    }

    #[test]
    fn a_malformed_body_is_an_error() {
        for json in ["{", r#"{"error":1}"#, r#"{"manifest_uid":"x"}"#, "3"] {
            assert!(ErrorBody::parse(json.as_bytes()).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_body_round_trips(context: Option<String>, reference: Option<String>, manifest_uid: Option<u64>) {
            let body = ErrorBody { context, reference, manifest_uid };
            prop_assert_eq!(ErrorBody::parse(&body.to_json()), Ok(body));
        }
    }
}
