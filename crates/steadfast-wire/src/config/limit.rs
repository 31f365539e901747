//! Limits on the lists of a config, which hold while the config is parsed.
//!
//! A client dials each node of a config, so the number of nodes must be limited. Without a
//! limit, a config of a few megabytes would take hundreds of megabytes when parsed.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// The most nodes, or other entries of a list. The largest clusters have some hundred
/// nodes.
const MAX: usize = 4096;

/// Parses a list.
pub(super) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(Limited(PhantomData))
}

/// Parses a list that may be null.
pub(super) fn optional<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_option(OptionalList(PhantomData))
}

struct Limited<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Limited<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format_args!(
                    "a list has more than {MAX} entries"
                )));
            }
            list.push(entry);
        }
        Ok(list)
    }
}

struct OptionalList<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OptionalList<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "null, or a list of at most {MAX} entries")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        list(deserializer).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClusterConfig;
    use super::*;

    fn parse(count: usize) -> Result<ClusterConfig, crate::DecodeError> {
        let nodes = vec![r#"{"services":{}}"#; count].join(",");
        ClusterConfig::parse(
            format!(r#"{{"rev":1,"nodesExt":[{nodes}]}}"#).as_bytes(),
            "h",
        )
    }

    #[test]
    fn a_config_has_at_most_so_many_nodes() {
        assert_eq!(parse(MAX).unwrap().nodes.len(), MAX);
        let error = parse(1_000_000).unwrap_err().to_string();
        assert!(error.contains("more than 4096"), "{error}");
    }
}
