//! JSON of the error map. What is understood means the same when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_wire::error_map::ErrorMap;

fuzz_target!(|data: &[u8]| {
    match ErrorMap::parse(data) {
        Ok(read) => assert_eq!(ErrorMap::parse(&read.to_json()), Ok(read)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
