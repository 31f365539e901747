//! The rows of a response, cut anywhere.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let [piece, response @ ..] = data {
        steadfast_couchbase::fuzzing::rows(response, usize::from(*piece));
    }
});
