//! Scan vectors: the writes that a query or a search must see.
//!
//! Queries here read the documents themselves, so every write that happened is seen. A
//! real service waits for writes that its index has not seen yet, and gives up at its
//! timeout. A vector that no write has reached is therefore rejected at once.

use serde_json::Value;

use super::HttpSession;
use crate::bucket::Bucket;

/// Says why a search cannot be consistent with its vectors.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unmet {
    /// The vectors cannot be read.
    Malformed(&'static str),
    /// No such write has happened.
    NotReached(String),
}

/// Checks the vectors of a search: for each index the seqno by `vbucket/uuid`. An index
/// can be of any bucket here.
pub(super) fn check_search_vectors(vectors: &Value, session: &HttpSession) -> Result<(), Unmet> {
    const NOT_A_VECTOR: Unmet = Unmet::Malformed("consistency has an entry that is no vector");
    let Some(indexes) = vectors.as_object() else {
        return Err(NOT_A_VECTOR);
    };
    for vectors in indexes.values() {
        for (name, seqno) in vectors.as_object().ok_or(NOT_A_VECTOR)? {
            let (vbucket, uuid) = name.split_once('/').ok_or(NOT_A_VECTOR)?;
            let (Ok(vbucket), Ok(uuid), Some(seqno)) =
                (vbucket.parse(), uuid.parse(), seqno.as_u64())
            else {
                return Err(NOT_A_VECTOR);
            };
            let mut buckets = session.shared.buckets().into_iter();
            if !buckets.any(|bucket| has_reached(&bucket, vbucket, uuid, seqno)) {
                return Err(Unmet::NotReached(name.clone()));
            }
        }
    }
    Ok(())
}

/// Whether a vbucket has this history, up to this write.
pub(super) fn has_reached(bucket: &Bucket, vbucket: u16, uuid: u64, seqno: u64) -> bool {
    let Ok(vbucket) = bucket.vbucket(vbucket) else {
        return false;
    };
    let Some(active) = vbucket.active() else {
        return false;
    };
    vbucket.active_copy(active).is_ok_and(|copy| {
        let mut log = copy.failover_log.iter();
        log.any(|(known, _)| *known == uuid) && copy.high_seqno >= seqno
    })
}
