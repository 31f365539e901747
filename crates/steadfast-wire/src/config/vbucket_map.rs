//! The vbucket map: the nodes of each vbucket.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The most vbuckets there can be: the hash of a key has fifteen bits.
pub const MAX_VBUCKETS: usize = 1 << 15;

/// The most copies of a vbucket that a map may list. The server's own limit is four, the active
/// one and three replicas.
pub const MAX_COPIES: usize = 16;

/// For every vbucket the nodes that have it, the active one first.
///
/// One flat table, because it is read for every operation and replaced for every config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VbucketMap {
    copies: usize,
    nodes: Vec<i16>,
}

/// Means that no node has this copy.
const NO_NODE: i16 = -1;

impl VbucketMap {
    /// Returns the number of vbuckets; zero for a bucket that is being created.
    #[inline]
    pub fn vbucket_count(&self) -> u16 {
        // At most `MAX_VBUCKETS`, which fits.
        self.nodes.len().checked_div(self.copies).unwrap_or(0) as u16
    }

    /// Returns the number of copies of each vbucket, the active one included.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// The node that has a copy of a vbucket, by its place in the server list. Copy 0 is the active
    /// one, the others are replicas. `None` if there is no such vbucket or copy, or no node has it.
    #[inline]
    pub fn node(&self, vbucket: u16, copy: usize) -> Option<usize> {
        if copy >= self.copies {
            return None;
        }
        let node = self.nodes.get(usize::from(vbucket) * self.copies + copy)?;
        usize::try_from(*node).ok()
    }

    /// The node that has the active copy.
    #[inline]
    pub fn active(&self, vbucket: u16) -> Option<usize> {
        self.node(vbucket, 0)
    }

    /// The greatest node that is mentioned.
    pub(super) fn greatest_node(&self) -> Option<usize> {
        self.nodes
            .iter()
            .max()
            .and_then(|node| usize::try_from(*node).ok())
    }

    fn push(&mut self, row: &[i16]) -> Result<(), &'static str> {
        if row.iter().any(|node| *node < NO_NODE) {
            return Err("a node's number is below -1");
        }
        if row.is_empty() {
            return Err("a vbucket has no copy at all");
        }
        if row.len() > MAX_COPIES {
            return Err("a vbucket has too many copies");
        }
        if !self.nodes.is_empty() && row.len() != self.copies {
            return Err("vbuckets differ in their number of copies");
        }
        if self.nodes.len() >= MAX_VBUCKETS * row.len() {
            return Err("there are too many vbuckets");
        }
        self.copies = row.len();
        self.nodes.extend_from_slice(row);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for VbucketMap {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowsVisitor)
    }
}

struct RowsVisitor;

impl<'de> Visitor<'de> for RowsVisitor {
    type Value = VbucketMap;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row of nodes for each vbucket")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<VbucketMap, A::Error> {
        let mut map = VbucketMap {
            copies: 0,
            nodes: Vec::new(),
        };
        while let Some(row) = rows.next_element::<Vec<i16>>()? {
            map.push(&row).map_err(A::Error::custom)?;
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<VbucketMap, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn node_zero_is_a_node_and_minus_one_is_none() {
        let map = parse("[[0, 1], [1, -1], [-1, 0]]").unwrap();
        assert_eq!((map.vbucket_count(), map.copies()), (3, 2));
        assert_eq!((map.active(0), map.node(0, 1)), (Some(0), Some(1)));
        assert_eq!((map.active(1), map.node(1, 1)), (Some(1), None));
        assert_eq!((map.active(2), map.node(2, 1)), (None, Some(0)));
        assert_eq!(
            (map.active(3), map.node(0, 2), map.node(u16::MAX, 9)),
            (None, None, None)
        );
    }

    #[test]
    fn a_bucket_that_is_only_being_made_has_no_vbuckets() {
        let map = parse("[]").unwrap();
        assert_eq!((map.vbucket_count(), map.active(0)), (0, None));
    }

    #[test]
    fn an_invalid_map_is_rejected() {
        for (json, problem) in [
            ("[[0],[0,1]]", "differ in their number of copies"),
            ("[[]]", "no copy at all"),
            ("[[-2]]", "below -1"),
            ("[[40000]]", "invalid value"),
            ("[[0.5]]", "invalid type"),
            ("[0]", "expected a sequence"),
            ("{}", "a row of nodes for each vbucket"),
        ] {
            let error = parse(json).unwrap_err();
            assert!(error.contains(problem), "{json}: {error}");
        }
        assert!(parse(&format!("[[{}0]]", "0,".repeat(MAX_COPIES))).is_err());
    }

    #[test]
    fn the_number_of_vbuckets_is_bounded() {
        let rows = |count| parse(&format!("[{}[0,1]]", "[0,1],".repeat(count - 1)));
        assert_eq!(rows(MAX_VBUCKETS).unwrap().vbucket_count(), 1 << 15);
        let error = rows(MAX_VBUCKETS + 1).unwrap_err();
        assert!(error.contains("there are too many vbuckets"), "{error}");
    }
}
