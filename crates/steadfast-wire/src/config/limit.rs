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

/// A list with a limited length.
pub(super) struct LimitedList<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LimitedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = LimitedList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MAX} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::custom(format_args!(
                    "a list has more than {MAX} entries"
                )));
            }
            list.push(entry);
        }
        Ok(LimitedList(list))
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
