//! Durations in configuration files, as text with units: `100ms`, `1m30s`.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

use crate::duration::parse;

/// Writes a duration in the largest unit that keeps it whole.
pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Written(*value))
}

/// Reads a duration.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    from.deserialize_str(Text)
}

/// The same for durations that may be missing.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(from).map(Some)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as \"100ms\": numbers with ns, us, ms, s, m or h")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        let time = parse(text).filter(|time| *time < Duration::MAX);
        time.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

struct Written(Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), self.0.as_nanos());
        match () {
            () if nanos % 1_000_000_000 == 0 && seconds % 60 != 0 => write!(f, "{seconds}s"),
            () if nanos == 0 => f.write_str("0s"),
            () if nanos % 3_600_000_000_000 == 0 => write!(f, "{}h", seconds / 3600),
            () if nanos % 60_000_000_000 == 0 => write!(f, "{}m", seconds / 60),
            () if nanos % 1_000_000 == 0 => write!(f, "{}ms", nanos / 1_000_000),
            () if nanos % 1_000 == 0 => write!(f, "{}us", nanos / 1_000),
            () => write!(f, "{nanos}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_as_the_same_time() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1500ns"),
            (2_000, "2us"),
            (1_500_000_000, "1500ms"),
            (20_000_000_000, "20s"),
            (90_000_000_000, "90s"),
            (120_000_000_000, "2m"),
            (7_200_000_000_000, "2h"),
            (u64::MAX, "18446744073709551615ns"),
        ] {
            let time = Duration::from_nanos(nanos);
            assert_eq!(Written(time).to_string(), text);
            assert_eq!(parse(text), Some(time));
        }
    }
}
