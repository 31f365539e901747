//! Values that carry a checksum, and what a read makes of them.

use serde::Deserialize;

use super::keys::SHARED;
use crate::client::{Content, Value};
use crate::history::{self, Body, Digest};
use crate::write_id::WriteId;

/// The first byte of the flags of a JSON document (SDK RFC 0020).
const JSON: u8 = 2;

/// What a document holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The id of its last write.
    Document,
    Counter,
    /// A text that grows at both ends.
    Text,
    /// An array that grows.
    Array,
}

impl Shape {
    /// Returns the shape of a document of all workers.
    pub(super) fn of_shared(index: usize) -> Self {
        match index % 8 {
            0..=3 => Self::Document,
            4 | 5 => Self::Counter,
            6 => Self::Text,
            _ => Self::Array,
        }
    }

    /// Returns the index of a document of all workers with this shape, near the given one.
    pub(super) fn near(self, index: usize) -> usize {
        let first = index % SHARED / 8 * 8;
        let within = match self {
            Self::Document => index % 4,
            Self::Counter => 4 + index % 2,
            Self::Text => 6,
            Self::Array => 7,
        };
        first + within
    }

    /// Returns the ids in a document of this shape, in order; none if the content is not as it
    /// was written.
    pub(super) fn ids(self, bytes: &[u8]) -> Option<Vec<WriteId>> {
        match self {
            Self::Document => Some(vec![whole(bytes)?]),
            Self::Counter => None,
            Self::Text => {
                let text = std::str::from_utf8(bytes).ok()?;
                let (before, after) = text.split_once("\"\"")?;
                let parts = before
                    .split_terminator(';')
                    .chain(after.split_terminator(';'));
                parts.map(exact_id).collect()
            }
            Self::Array => elements(bytes)?.into_iter().map(exact_id).collect(),
        }
    }

    /// Returns what was read, for the check of the order.
    pub(super) fn seen(self, content: &Content) -> Body {
        let bytes = &content.value[..];
        let value = match self {
            Self::Document | Self::Text => None,
            Self::Counter => {
                let text = std::str::from_utf8(bytes).ok();
                text.and_then(|text| text.parse().ok())
                    .map(history::DocumentValue::Number)
            }
            Self::Array => elements(bytes).map(|elements| {
                let mut text = String::new();
                for element in elements {
                    text.push_str(element);
                    text.push(',');
                }
                history::DocumentValue::List(Digest::of(text.as_bytes()))
            }),
        };
        Body {
            value: value.unwrap_or_else(|| history::DocumentValue::Bytes(Digest::of(bytes))),
            format: content.flags.map(|flags| (flags >> 24) as u8),
            expiry: content.expiry,
        }
    }
}

/// A document as it is read.
#[derive(Deserialize)]
struct Stored<'a> {
    id: &'a str,
    padding: &'a str,
    sum: &'a str,
}

/// A document with an array, or the array alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Elements<'a> {
    Document {
        #[serde(borrow)]
        a: Vec<&'a str>,
    },
    #[serde(borrow)]
    Part(Vec<&'a str>),
}

/// Returns the value of a document, with a checksum of its content and of the id.
pub(super) fn document(id: WriteId, padding: &str) -> Value<'_> {
    let id = id.to_string();
    let sum = sum(&id, padding);
    Value::Document { id, padding, sum }
}

/// Returns the first value of a document that grows.
pub(super) fn initial(shape: Shape) -> Value<'static> {
    match shape {
        Shape::Document | Shape::Counter => Value::Counter(0),
        Shape::Text => Value::Text(""),
        Shape::Array => Value::Array { a: [] },
    }
}

/// Returns the id of a document whose content is as it was written.
pub(crate) fn whole(bytes: &[u8]) -> Option<WriteId> {
    let stored: Stored<'_> = serde_json::from_slice(bytes).ok()?;
    let right = stored.sum == sum(stored.id, stored.padding);
    exact_id(stored.id).filter(|_| right)
}

/// Returns the content of a document after a value was written.
pub(super) fn body(value: &Value<'_>) -> Body {
    let value = match value {
        Value::Counter(number) => history::DocumentValue::Number(*number),
        Value::Array { .. } => history::DocumentValue::List(Digest::default()),
        Value::Document { .. } | Value::Text(_) => {
            let bytes = serde_json::to_vec(value).expect("every value has a JSON form");
            history::DocumentValue::Bytes(Digest::of(&bytes))
        }
    };
    Body {
        value,
        format: Some(JSON),
        expiry: Some(0),
    }
}

fn elements(bytes: &[u8]) -> Option<Vec<&str>> {
    match serde_json::from_slice(bytes).ok()? {
        Elements::Document { a } | Elements::Part(a) => Some(a),
    }
}

/// Returns the id that is the whole text.
fn exact_id(text: &str) -> Option<WriteId> {
    WriteId::find(text.as_bytes()).filter(|id| id.to_string() == text)
}

fn sum(id: &str, padding: &str) -> String {
    let digest = Digest::of(id.as_bytes()).then(Digest::of(padding.as_bytes()));
    format!("{:016x}", digest.hash())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: WriteId = WriteId {
        worker: 3,
        number: 77,
    };

    #[test]
    fn a_changed_document_is_not_whole() {
        let written = serde_json::to_string(&document(ID, "abcdef")).unwrap();
        assert_eq!(whole(written.as_bytes()), Some(ID));
        for changed in [
            written.replace("abcdef", "abcdeg"),
            written.replace("abcdef", "abcde"),
            written.replace("004d", "004e"),
            written[..written.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(whole(changed.as_bytes()), None, "{changed}");
        }
    }

    #[test]
    fn texts_and_arrays_contain_ids_and_nothing_else() {
        let other = WriteId { number: 78, ..ID };
        let text = format!("{other};\"\"{ID};{other};");
        assert_eq!(
            Shape::Text.ids(text.as_bytes()),
            Some(vec![other, ID, other])
        );
        for wrong in [
            format!("{text}x;"),
            text.replace('"', ""),
            text.replace("-", "_"),
        ] {
            assert_eq!(Shape::Text.ids(wrong.as_bytes()), None, "{wrong}");
        }
        let array = format!("{{\"a\":[\"{ID}\",\"{other}\"]}}");
        assert_eq!(Shape::Array.ids(array.as_bytes()), Some(vec![ID, other]));
        assert_eq!(Shape::Array.ids(&array.as_bytes()[..20]), None);
    }

    #[test]
    fn every_shape_has_documents_and_near_keeps_the_shape() {
        for shape in [Shape::Document, Shape::Counter, Shape::Text, Shape::Array] {
            for index in 0..SHARED {
                assert_eq!(Shape::of_shared(shape.near(index)), shape);
            }
        }
    }
}
