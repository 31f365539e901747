//! The delays that an HTTP or gRPC server asks for.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use steadfast_http::hint::{self, Hint, MAX_DELAY};

const NAMES: [&str; 6] = [
    "retry-after",
    "retry-after-ms",
    "x-amz-retry-after",
    "grpc-retry-pushback-ms",
    "grpc-status-details-bin",
    "date",
];

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n') {
        if let [name, value @ ..] = line
            && let Ok(value) = HeaderValue::from_bytes(value)
        {
            let name = NAMES[usize::from(*name) % NAMES.len()];
            headers.append(HeaderName::from_static(name), value);
        }
    }
    let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    if let Hint::Wait(delay) = hint::parse(&headers, now) {
        assert!(!delay.is_zero() && delay <= MAX_DELAY, "{delay:?}");
    }
});
