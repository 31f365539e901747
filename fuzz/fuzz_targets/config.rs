//! JSON of the cluster config.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_wire::config::ClusterConfig;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = ClusterConfig::parse(data, "db1") {
        assert!(!error.to_string().is_empty());
    }
});
