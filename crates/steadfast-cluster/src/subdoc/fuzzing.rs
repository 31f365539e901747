//! Checks lookups and mutations with the paths that a fuzzer makes up.

use bytes::Bytes;
use steadfast_wire::subdoc::{LookupSpec, MutationSpec};
use steadfast_wire::{Datatype, Entries};

use super::attributes::Stamp;
use super::path::Path;
use super::{lookup, mutate};
use crate::store::document::StoredDocument;

/// Takes the bytes for a path, for lookups and for mutations of a document. The body of a
/// changed document must be JSON.
pub fn paths(data: &[u8]) {
    let stamp = Stamp {
        cas: 1,
        seqno: 2,
        uuid: 3,
        now: 4,
    };
    let document = StoredDocument {
        value: Bytes::from_static(
            br#"{"a":{"b":[1,{"c":null},"x"]},"n":9223372036854775807,"d.e":[]}"#,
        ),
        datatype: Datatype::JSON,
        ..StoredDocument::default()
    };
    if let Ok(path) = Path::parse(data) {
        let value = serde_json::from_slice(&document.value).expect("it is JSON");
        let _ = super::tree::find(&value, &path);
    }
    let lookups: Result<Vec<LookupSpec<'_>>, _> = Entries::new(data).collect();
    if let Ok(specs) = lookups {
        let _ = lookup::run(&specs, &document, stamp);
    }
    let mutations: Result<Vec<MutationSpec<'_>>, _> = Entries::new(data).collect();
    if let Ok(specs) = mutations
        && let Ok(mutated) = mutate::run(&specs, &document, stamp)
        && mutated.document.datatype.contains(Datatype::JSON)
    {
        let body = mutated.document.inflated().expect("it was not compressed");
        let _: serde_json::Value = serde_json::from_slice(&body).expect("it says that it is JSON");
    }
}
