//! JSON of the manifest. What is understood means the same when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_wire::collections::Manifest;

fuzz_target!(|data: &[u8]| {
    match Manifest::parse(data) {
        Ok(read) => assert_eq!(Manifest::parse(&read.to_json()), Ok(read)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
