//! Paths of subdocument operations, applied to a document.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| steadfast_cluster::fuzzing::paths(data));
