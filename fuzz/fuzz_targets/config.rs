//! JSON of the cluster config. What is understood means the same when written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_wire::config::ClusterConfig;

fuzz_target!(|data: &[u8]| {
    match ClusterConfig::parse(data, "db1") {
        Ok(read) => assert_eq!(ClusterConfig::parse(&read.to_json(), "db1"), Ok(read)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
