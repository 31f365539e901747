//! Reads that see the caller's own writes: mutation tokens as the services take them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::collection::MutationToken;
use crate::error::{Error, ErrorKind};

/// The newest token of each vbucket. An older one of the same vbucket is implied.
#[derive(Default)]
pub(super) struct Newest(BTreeMap<(Arc<str>, u16), MutationToken>);

impl Newest {
    /// Collects tokens for an operation.
    ///
    /// # Errors
    /// If there are none: the statement would silently read old data.
    pub(super) fn collect<'a>(
        operation: &'static str,
        tokens: impl IntoIterator<Item = &'a MutationToken>,
    ) -> Result<Self, Error> {
        let mut newest = Self::default();
        for token in tokens {
            let key = (token.bucket.clone(), token.vbucket);
            let known = newest.0.entry(key).or_insert_with(|| token.clone());
            if known.seqno < token.seqno {
                *known = token.clone();
            }
        }
        if newest.0.is_empty() {
            let problem = "there are no mutation tokens to be consistent with; \
                           does the server send them, and is mutation_tokens on?";
            return Err(Error::new(ErrorKind::InvalidArgument, operation).because(problem));
        }
        Ok(newest)
    }

    /// Returns a bucket that a token is of, other than this one.
    pub(super) fn bucket_other_than(&self, bucket: &str) -> Option<&str> {
        let buckets = self.0.keys().map(|(bucket, _)| &**bucket);
        buckets.into_iter().find(|other| *other != bucket)
    }

    /// The query service's `scan_vectors`: for each bucket and vbucket the seqno, and
    /// the uuid as a text.
    pub(super) fn scan_vectors(&self) -> Value {
        let mut buckets = Map::new();
        for ((bucket, vbucket), token) in &self.0 {
            let vectors = buckets.entry(&**bucket).or_insert_with(|| json!({}));
            let uuid = token.vbucket_uuid.to_string();
            vectors[vbucket.to_string()] = json!([token.seqno, uuid]);
        }
        Value::Object(buckets)
    }

    /// The search service's `consistency`: for the index, the seqno by vbucket and uuid.
    pub(super) fn search_consistency(&self, index: &str) -> Value {
        let vectors: Map<String, Value> = (self.0.iter())
            .map(|((_, vbucket), token)| {
                let name = format!("{vbucket}/{}", token.vbucket_uuid);
                (name, token.seqno.into())
            })
            .collect();
        json!({"level": "at_plus", "vectors": {index: vectors}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bucket: &str, vbucket: u16, seqno: u64) -> MutationToken {
        MutationToken {
            bucket: bucket.into(),
            vbucket,
            vbucket_uuid: u64::MAX,
            seqno,
        }
    }

    #[test]
    fn the_newest_token_of_each_vbucket_is_sent_as_the_services_want_it() {
        let tokens = [
            token("a", 5, 7),
            token("a", 5, 9),
            token("a", 5, 8),
            token("b", 5, 1),
        ];
        let newest = Newest::collect("query", &tokens).unwrap();
        let uuid = u64::MAX.to_string();
        let expected = json!({"a": {"5": [9, uuid]}, "b": {"5": [1, uuid]}});
        assert_eq!(newest.scan_vectors(), expected);
        assert_eq!(newest.bucket_other_than("a"), Some("b"));

        let newest = Newest::collect("search", &tokens[..3]).unwrap();
        let expected = json!({
            "level": "at_plus",
            "vectors": {"places": {(format!("5/{uuid}")): 9}},
        });
        assert_eq!(newest.search_consistency("places"), expected);
        assert_eq!(newest.bucket_other_than("a"), None);

        let none = Newest::collect("query", &[]).err().unwrap();
        assert_eq!(none.kind(), ErrorKind::InvalidArgument);
    }
}
