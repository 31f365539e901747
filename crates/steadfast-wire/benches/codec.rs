//! Times to encode and decode a GET and a SET, in nanoseconds.
//!
//! Run with `cargo bench -p steadfast-wire`. Each line is the best of several passes, because
//! everything that disturbs a pass makes it longer.
#![allow(
    missing_docs,
    clippy::print_stdout,
    reason = "a program that prints its measurements"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use steadfast_wire::extras::{DocumentFlags, StoreExtras};
use steadfast_wire::frame_info::{ResponseFrameInfo, ServerDuration};
use steadfast_wire::{
    CollectionId, Decoded, DocumentKey, FrameBuilder, FrameDecoder, Opcode, Status, vbucket,
};

const FRAMES: u32 = 1000;
const PASSES: u32 = 500;
const KEY: &[u8] = b"airline_10123";
const VALUE: &[u8] = &[b'x'; 256];

fn main() {
    report("encode GET", |_| {}, encode_get);
    report("encode SET, 256 bytes", |_| {}, encode_set);
    report("encode GET response, 256 bytes", |_| {}, encode_response);
    report("decode GET request", encode_get, decode_requests);
    report("decode SET request, 256 bytes", encode_set, decode_requests);
    report(
        "decode GET response, 256 bytes",
        encode_response,
        decode_responses,
    );
    report(
        "vbucket of a key",
        |_| {},
        |_| {
            for _ in 0..FRAMES {
                black_box(vbucket::of_key(black_box(KEY), 1024));
            }
        },
    );
}

/// Prints the time that `run` takes for a frame; `prepare` is not measured.
fn report(name: &str, prepare: fn(&mut BytesMut), run: fn(&mut BytesMut)) {
    let mut buffer = BytesMut::with_capacity(1 << 20);
    let mut best = Duration::MAX;
    for _ in 0..PASSES {
        buffer.clear();
        buffer.reserve(1 << 19);
        prepare(&mut buffer);
        let start = Instant::now();
        run(&mut buffer);
        best = best.min(start.elapsed());
    }
    println!(
        "{name:32} {:7.1} ns",
        best.as_nanos() as f64 / f64::from(FRAMES)
    );
}

fn encode_get(buffer: &mut BytesMut) {
    for opaque in 0..FRAMES {
        FrameBuilder::request(Opcode::Get)
            .vbucket(115)
            .opaque(opaque)
            .key(DocumentKey::new(
                CollectionId(black_box(0x555)),
                black_box(KEY),
            ))
            .encode(buffer)
            .expect("a short key fits");
    }
}

fn encode_set(buffer: &mut BytesMut) {
    for opaque in 0..FRAMES {
        FrameBuilder::request(Opcode::Set)
            .vbucket(115)
            .opaque(opaque)
            .extras(StoreExtras {
                flags: 0x0200_0000,
                expiry: 0,
            })
            .key(DocumentKey::new(
                CollectionId(black_box(0x555)),
                black_box(KEY),
            ))
            .value(black_box(VALUE))
            .encode(buffer)
            .expect("a short key and value fit");
    }
}

fn encode_response(buffer: &mut BytesMut) {
    for opaque in 0..FRAMES {
        FrameBuilder::response(Opcode::Get, Status::Success)
            .opaque(opaque)
            .cas(17)
            .framing(ResponseFrameInfo::ServerDuration(
                ServerDuration::from_code(5),
            ))
            .extras(DocumentFlags { flags: 0x0200_0000 })
            .value(black_box(VALUE))
            .encode(buffer)
            .expect("a short value fits");
    }
}

fn decode_requests(buffer: &mut BytesMut) {
    let decoder = FrameDecoder::from_client();
    while let Ok(Decoded::Frame(frame)) = decoder.decode(buffer) {
        black_box((
            frame.opcode(),
            DocumentKey::decode(frame.key(), true).is_ok(),
            frame.value(),
        ));
    }
}

fn decode_responses(buffer: &mut BytesMut) {
    let decoder = FrameDecoder::from_server();
    while let Ok(Decoded::Frame(frame)) = decoder.decode(buffer) {
        black_box((
            frame.status(),
            DocumentFlags::decode(frame.extras()).is_ok(),
        ));
        black_box(frame.into_value());
    }
}
