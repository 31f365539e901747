//! Connection strings.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_couchbase::{ClusterOptions, ConnectionString};

fuzz_target!(|text: &str| {
    match ConnectionString::parse(text) {
        Ok(parsed) => {
            assert!(!parsed.hosts().is_empty(), "there is no host to connect to");
            parsed.apply_to(&mut ClusterOptions::default());
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "an error is one line"),
    }
});
