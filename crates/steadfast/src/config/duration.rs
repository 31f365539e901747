//! Durations in configuration files, as text with units: `100ms`, `1m30s`.

use std::fmt;
use std::time::Duration;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

use crate::duration::parse;

/// Reads a duration.
pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_str(Text)
}

/// Reads a duration that may be missing.
pub(super) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    read(from).map(Some)
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"100ms\": numbers with ns, us, ms, s, m or h")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        let time = parse(text).filter(|time| *time < Duration::MAX);
        time.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}
