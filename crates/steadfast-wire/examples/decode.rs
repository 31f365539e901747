//! Shows frames that are given in hexadecimal, such as from a packet capture.
//!
//!     cargo run -p steadfast-wire --example decode -- 80000003000000000000000300000007 \
//!         0000000000000000666f6f
#![allow(clippy::print_stdout, reason = "an example shows what happens")]

use bytes::BytesMut;
use steadfast_wire::{Decoded, FrameDecoder};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let digits: String = std::env::args().skip(1).collect();
    let mut buffer = BytesMut::new();
    for at in (0..digits.len()).step_by(2) {
        let byte = digits.get(at..at + 2).ok_or("an odd number of digits")?;
        buffer.extend_from_slice(&[u8::from_str_radix(byte, 16)?]);
    }
    let decoder = FrameDecoder::from_client();
    while let Decoded::Frame(frame) = decoder.decode(&mut buffer)? {
        let key = String::from_utf8_lossy(frame.key()).into_owned();
        println!(
            "{:?}, opaque {}, key {key:?}",
            frame.opcode(),
            frame.opaque()
        );
    }
    if !buffer.is_empty() {
        println!("{} bytes of an incomplete frame", buffer.len());
    }
    Ok(())
}
