//! Framing extras of requests and responses. What is understood means the same when written again.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use steadfast_wire::frame_info::{RawFrameInfo, RequestFrameInfo, ResponseFrameInfo};
use steadfast_wire::{Encode, Entries};

fuzz_target!(|data: &[u8]| {
    comes_back(data, Entries::<RawFrameInfo<'_>>::new(data).collect());
    comes_back(data, Entries::<RequestFrameInfo<'_>>::new(data).collect());
    comes_back(data, Entries::<ResponseFrameInfo<'_>>::new(data).collect());
});

/// Each form of a frame info is the only one: escapes are used from fifteen on and there alone.
fn comes_back<T: Encode, E>(data: &[u8], infos: Result<Vec<T>, E>) {
    if let Ok(infos) = infos {
        let mut out = BytesMut::new();
        infos[..]
            .append_to(&mut out)
            .expect("what was read can be written");
        assert_eq!(data, &out[..]);
    }
}
