//! The hot path allocates nothing: a GET and a SET, encoded and decoded on either side.

use allocation_counter::measure;
use bytes::BytesMut;
use steadfast_wire::extras::{DocumentFlags, MutationTokenExtras, StoreExtras};
use steadfast_wire::frame_info::{
    Durability, DurabilityLevel, RequestFrameInfo, ResponseFrameInfo, ServerDuration,
};
use steadfast_wire::{
    CollectionId, Decoded, DocumentKey, Frame, FrameBuilder, FrameDecoder, Opcode, Status, vbucket,
};

const ROUNDS: u32 = 100;
const KEY: &[u8] = b"airline_10123";
const VALUE: &[u8] = &[b'x'; 512];

/// A buffer that is large enough for all rounds and shared already, as that of a connection is
/// after its first frame: the first split of a fresh buffer allocates its reference count.
fn buffer() -> BytesMut {
    let mut buffer = BytesMut::with_capacity(1 << 20);
    drop(buffer.split());
    buffer
}

fn get(buffer: &mut BytesMut, opaque: u32) {
    FrameBuilder::request(Opcode::Get)
        .vbucket(vbucket::of_key(KEY, 1024))
        .opaque(opaque)
        .key(DocumentKey::new(CollectionId(0x555), KEY))
        .encode(buffer)
        .expect("a short key fits");
}

fn durable_set(buffer: &mut BytesMut, opaque: u32) {
    let durability = RequestFrameInfo::Durability(Durability::new(DurabilityLevel::Majority));
    FrameBuilder::request(Opcode::Set)
        .vbucket(vbucket::of_key(KEY, 1024))
        .opaque(opaque)
        .framing(durability)
        .extras(StoreExtras {
            flags: 0x0200_0000,
            expiry: 0,
        })
        .key(DocumentKey::new(CollectionId(0x555), KEY))
        .value(VALUE)
        .encode(buffer)
        .expect("a short key and value fit");
}

fn answer(request: &Frame, buffer: &mut BytesMut) {
    let reply = FrameBuilder::reply(request, Status::Success)
        .cas(17)
        .framing(ResponseFrameInfo::ServerDuration(
            ServerDuration::from_code(5),
        ));
    if request.opcode() == Opcode::Get {
        reply
            .extras(DocumentFlags { flags: 0x0200_0000 })
            .value(VALUE)
            .encode(buffer)
    } else {
        reply
            .extras(MutationTokenExtras {
                vbucket_uuid: 1,
                seqno: 2,
            })
            .encode(buffer)
    }
    .expect("a short answer fits");
}

#[test]
fn a_get_and_a_set_cost_no_allocation_on_either_side() {
    let (mut to_server, mut to_client) = (buffer(), buffer());
    let (server, client) = (FrameDecoder::from_client(), FrameDecoder::from_server());

    let mut served = 0;
    let mut values = 0;
    let info = measure(|| {
        for opaque in 0..ROUNDS {
            get(&mut to_server, opaque);
            durable_set(&mut to_server, opaque);
        }
        while let Ok(Decoded::Frame(request)) = server.decode(&mut to_server) {
            let key = DocumentKey::decode(request.key(), true).expect("it has a prefix");
            assert_eq!(key.id, KEY);
            assert_eq!(
                request.request_frame_infos().filter(Result::is_err).count(),
                0
            );
            let value = request.share(request.value());
            assert!(value.is_empty() || StoreExtras::decode(request.extras()).is_ok());
            answer(&request, &mut to_client);
            served += 1;
        }
        while let Ok(Decoded::Frame(response)) = client.decode(&mut to_client) {
            assert_eq!(response.status(), Status::Success);
            assert_eq!(response.response_frame_infos().count(), 1);
            values += response.into_value().len();
        }
    });
    assert_eq!(served, ROUNDS * 2);
    assert_eq!(values, ROUNDS as usize * VALUE.len());
    assert_eq!(info.count_total, 0, "{info:?}");
}

#[test]
fn the_count_notices_an_allocation() {
    assert_eq!(
        measure(|| drop(std::hint::black_box(vec![0; 10]))).count_total,
        1
    );
}
