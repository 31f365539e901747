//! The error map as JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::time::Duration;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Attributes, ErrorDefinition, ErrorMap, ErrorMapBackoff, MapVersion, RetrySpec};
use crate::{DecodeError, hex};

#[derive(Serialize, Deserialize)]
struct JsonMap {
    version: u16,
    revision: u32,
    errors: JsonErrors,
}

/// The errors by their codes, which JSON has as hexadecimal text.
struct JsonErrors(BTreeMap<u16, ErrorDefinition>);

#[derive(Serialize, Deserialize)]
struct JsonDefinition<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    desc: Cow<'a, str>,
    #[serde(borrow)]
    attrs: Vec<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    retry: Option<JsonRetry<'a>>,
    #[serde(flatten, borrow, skip_serializing)]
    flat: FlatRetry<'a>,
}

/// The members of a retry specification next to the attributes, where the RFC's own sample has
/// them (its code `fff2`).
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FlatRetry<'a> {
    #[serde(borrow, default)]
    strategy: Option<Cow<'a, str>>,
    interval: Option<u64>,
    after: Option<u64>,
    max_duration: Option<u64>,
    ceil: Option<u64>,
}

impl<'a> FlatRetry<'a> {
    /// The specification, if it has what one must have. The sample is called exponential and names
    /// no strategy.
    fn read(self) -> Option<JsonRetry<'a>> {
        Some(JsonRetry {
            interval: self.interval?,
            after: self.after?,
            strategy: (self.strategy)
                .unwrap_or(Cow::Borrowed(ErrorMapBackoff::Exponential.json_name())),
            max_duration: self.max_duration,
            ceil: self.ceil,
        })
    }
}

/// All times are in milliseconds.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct JsonRetry<'a> {
    #[serde(borrow)]
    strategy: Cow<'a, str>,
    interval: u64,
    after: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_duration: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ceil: Option<u64>,
}

pub(super) fn parse(json: &[u8]) -> Result<ErrorMap, DecodeError> {
    let malformed = |problem| DecodeError::Json {
        what: "the error map",
        problem,
    };
    let map: JsonMap = serde_json::from_slice(json).map_err(|e| malformed(e.to_string()))?;
    let version = match map.version {
        1 => MapVersion::V1,
        2 => MapVersion::V2,
        other => return Err(malformed(format!("version {other} is neither 1 nor 2"))),
    };
    Ok(ErrorMap {
        version,
        revision: map.revision,
        errors: map.errors.0,
    })
}

pub(super) fn write(map: &ErrorMap) -> Vec<u8> {
    let json = JsonMap {
        version: map.version.number(),
        revision: map.revision,
        errors: JsonErrors(map.errors.clone()),
    };
    serde_json::to_vec(&json).expect("text keys and plain values always make JSON")
}

impl Serialize for JsonErrors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.iter();
        serializer.collect_map(entries.map(|(code, definition)| {
            (
                hex::write(u64::from(*code)),
                JsonDefinition::from(definition),
            )
        }))
    }
}

impl<'de> Deserialize<'de> for JsonErrors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ErrorsVisitor).map(Self)
    }
}

struct ErrorsVisitor;

impl<'de> Visitor<'de> for ErrorsVisitor {
    type Value = BTreeMap<u16, ErrorDefinition>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error definitions by hexadecimal code")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut errors = BTreeMap::new();
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            let code = hex::parse("its code", &key)
                .ok()
                .and_then(|code| u16::try_from(code).ok())
                .ok_or_else(|| A::Error::custom(format!("{key:?} is not a status code")))?;
            let definition: JsonDefinition<'de> = entries
                .next_value()
                .map_err(|error| A::Error::custom(format!("status {key:?}: {error}")))?;
            match errors.entry(code) {
                Entry::Vacant(vacant) => vacant.insert(ErrorDefinition::from(definition)),
                Entry::Occupied(_) => {
                    return Err(A::Error::custom(format!("status {key:?} is there twice")));
                }
            };
        }
        Ok(errors)
    }
}

impl From<JsonDefinition<'_>> for ErrorDefinition {
    fn from(json: JsonDefinition<'_>) -> Self {
        let attributes = json.attrs.iter();
        Self {
            name: json.name.into_owned(),
            description: json.desc.into_owned(),
            attributes: attributes
                .map(|name| Attributes::from_json_name(name))
                .collect(),
            retry: json.retry.or_else(|| json.flat.read()).and_then(read_retry),
        }
    }
}

/// A specification with an unknown strategy cannot be followed and counts as absent (D61).
fn read_retry(json: JsonRetry<'_>) -> Option<RetrySpec> {
    Some(RetrySpec {
        strategy: ErrorMapBackoff::from_json_name(&json.strategy)?,
        interval: Duration::from_millis(json.interval),
        after: Duration::from_millis(json.after),
        max_duration: json
            .max_duration
            .filter(|ms| *ms != 0)
            .map(Duration::from_millis),
        ceil: json.ceil.map(Duration::from_millis),
    })
}

impl<'a> From<&'a ErrorDefinition> for JsonDefinition<'a> {
    fn from(definition: &'a ErrorDefinition) -> Self {
        // Nobody writes a delay of half a billion years.
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            name: Cow::Borrowed(&definition.name),
            desc: Cow::Borrowed(&definition.description),
            attrs: definition
                .attributes
                .json_names()
                .map(Cow::Borrowed)
                .collect(),
            retry: definition.retry.map(|retry| JsonRetry {
                strategy: Cow::Borrowed(retry.strategy.json_name()),
                interval: millis(retry.interval),
                after: millis(retry.after),
                max_duration: retry.max_duration.map(millis),
                ceil: retry.ceil.map(millis),
            }),
            flat: FlatRetry::default(),
        }
    }
}
