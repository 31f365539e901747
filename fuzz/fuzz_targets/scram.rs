//! SCRAM, both halves: the messages of a server and of a client.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut messages = data.splitn(2, |byte| *byte == b'\n');
    let first = messages.next().unwrap_or_default();
    let last = messages.next().unwrap_or_default();
    steadfast_couchbase::fuzzing::scram(first, last);
    steadfast_cluster::fuzzing::login(first, last);
});
