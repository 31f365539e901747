//! A stream of bytes, cut into frames as either side does. Whatever is a frame is the same frame
//! when written again.
#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use steadfast_wire::{
    Decoded, DocumentKey, ErrorBody, FrameBuilder, FrameDecoder, HEADER_LEN, Magic, config,
};

fuzz_target!(|data: &[u8]| {
    for decoder in [FrameDecoder::from_client(), FrameDecoder::from_server()] {
        let decoder = decoder.with_max_body(1 << 20);
        let mut buffer = BytesMut::from(data);
        loop {
            let before = buffer.clone();
            match decoder.decode(&mut buffer) {
                Ok(Decoded::Frame(frame)) => {
                    let taken = before.len() - buffer.len();
                    assert_eq!(&before[HEADER_LEN..taken], frame.body());
                    if !is_odd(&frame) {
                        assert_eq!(&before[..taken], &rewrite(&frame)[..]);
                    }
                    let _ = DocumentKey::decode(frame.key(), true);
                    let _ = ErrorBody::of(&frame);
                    let _ = config::ConfigNotification::decode(&frame);
                    let _ = frame.plain_value(1 << 20);
                }
                Ok(Decoded::NeedMore(missing)) => {
                    assert!(missing > 0 && missing <= HEADER_LEN + (1 << 20));
                    assert_eq!(before, buffer);
                    break;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    assert_eq!(before, buffer);
                    break;
                }
            }
        }
    }
});

/// A flexible frame without framing extras would be written in the classic format.
fn is_odd(frame: &steadfast_wire::Frame) -> bool {
    frame.header().magic.is_flexible() && frame.framing_extras().is_empty()
}

fn rewrite(frame: &steadfast_wire::Frame) -> BytesMut {
    let builder = match frame.header().magic {
        Magic::Request | Magic::FlexibleRequest => FrameBuilder::request(frame.opcode()),
        Magic::Response | Magic::FlexibleResponse => {
            FrameBuilder::response(frame.opcode(), frame.status())
        }
        Magic::ServerRequest => FrameBuilder::server_request(frame.server_opcode()),
        Magic::ClientResponse => FrameBuilder::reply(frame, frame.status()),
    };
    let mut out = BytesMut::new();
    builder
        .vbucket(frame.vbucket())
        .opaque(frame.opaque())
        .cas(frame.header().cas)
        .datatype(frame.header().datatype)
        .framing(frame.framing_extras())
        .extras(frame.extras())
        .key(frame.key())
        .value(frame.value())
        .encode(&mut out)
        .expect("what was read can be written");
    out
}
