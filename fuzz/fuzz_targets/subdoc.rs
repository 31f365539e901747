//! Subdocument bodies, single and multi-path, in both directions.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use steadfast_wire::subdoc::{
    LookupResult, LookupSpec, MultiExtras, MutationOutcome, MutationSpec, PathMutationResult,
    SinglePath,
};
use steadfast_wire::{Encode, Entries, Status};

fuzz_target!(|data: &[u8]| {
    comes_back(data, Entries::<LookupSpec<'_>>::new(data).collect());
    comes_back(data, Entries::<LookupResult<'_>>::new(data).collect());
    comes_back(data, Entries::<MutationSpec<'_>>::new(data).collect());
    comes_back(data, Entries::<PathMutationResult<'_>>::new(data).collect());
    let _ = MultiExtras::decode(data);
    for status in [Status::Success, Status::SubdocMultiPathFailure] {
        if let Ok(Some(MutationOutcome::Done(results))) = MutationOutcome::decode(status, data) {
            let _ = results.count();
        }
    }
    let (extras, value) = data.split_at(data.len().min(8));
    for len in 0..=extras.len() {
        if let Ok(single) = SinglePath::decode(&extras[..len], value) {
            let (mut new_extras, mut body) = (BytesMut::new(), BytesMut::new());
            single
                .extras()
                .append_to(&mut new_extras)
                .expect("what was read can be written");
            single
                .body()
                .append_to(&mut body)
                .expect("what was read can be written");
            assert_eq!(SinglePath::decode(&new_extras, &body), Ok(single));
        }
    }
});

fn comes_back<T: Encode, E>(data: &[u8], entries: Result<Vec<T>, E>) {
    if let Ok(entries) = entries {
        let mut out = BytesMut::new();
        entries[..]
            .append_to(&mut out)
            .expect("what was read can be written");
        assert_eq!(data, &out[..]);
    }
}
