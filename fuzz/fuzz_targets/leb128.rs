//! Numbers in LEB128: what decodes has no other spelling, and every number comes back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast_wire::leb128;

fuzz_target!(|data: &[u8]| {
    if let Ok((value, rest)) = leb128::decode(data) {
        assert_eq!(
            leb128::encode(value).as_ref(),
            &data[..data.len() - rest.len()]
        );
    }
    if let Some(bytes) = data.first_chunk() {
        let value = u32::from_be_bytes(*bytes);
        let encoded = leb128::encode(value);
        assert_eq!(encoded.as_ref().len(), leb128::encoded_len(value));
        assert_eq!(leb128::decode(encoded.as_ref()), Ok((value, &[][..])));
    }
});
