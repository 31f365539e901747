//! Scan vectors: the writes that a query must see.
//!
//! Queries here read the documents themselves, so every write that happened is seen. A
//! real service waits for writes that its index has not seen yet, and gives up at its
//! timeout. A vector that no write has reached is therefore rejected at once.

use crate::error::QueryError;
use crate::options::RequestOptions;
use crate::session::Session;

/// Checks the vectors of a query: for each bucket and vbucket a seqno and a uuid.
pub(crate) fn check(options: &RequestOptions, session: &dyn Session) -> Result<(), QueryError> {
    if options.text("scan_consistency") != Some("at_plus") {
        return Ok(());
    }
    let malformed = |sentence: &str| QueryError::new(1070, sentence);
    let not_a_vector = || malformed("scan_vectors has an entry that is no vector");
    let vectors = options.value("scan_vectors").as_object();
    let Some(buckets) = vectors.filter(|buckets| !buckets.is_empty()) else {
        return Err(malformed("at_plus needs scan_vectors"));
    };
    for (bucket, vectors) in buckets {
        for (vbucket, vector) in vectors.as_object().ok_or_else(not_a_vector)? {
            let number = vbucket.parse().map_err(|_| not_a_vector())?;
            let (Some(seqno), Some(uuid)) = (vector[0].as_u64(), vector[1].as_str()) else {
                return Err(not_a_vector());
            };
            let uuid = uuid.parse().map_err(|_| not_a_vector())?;
            if !session.has_reached(bucket, number, uuid, seqno) {
                let message = format!("Index scan timed out - {bucket}/{vbucket}");
                return Err(QueryError::new(12_015, message));
            }
        }
    }
    Ok(())
}
