//! Frames of both formats, in both directions.

use bytes::BytesMut;
use proptest::prelude::*;
use steadfast_wire::extras::StoreExtras;
use steadfast_wire::frame_info::{
    Durability, DurabilityLevel, RequestFrameInfo, ResponseFrameInfo, ServerDuration,
};
use steadfast_wire::{
    CollectionId, DEFAULT_MAX_BODY, Datatype, Decoded, DocumentKey, EncodeError, Frame,
    FrameBuilder, FrameDecoder, FrameError, HEADER_LEN, Header, Magic, Opcode, ServerOpcode,
    Status,
};

fn frame(decoder: FrameDecoder, buffer: &mut BytesMut) -> Frame {
    match decoder.decode(buffer) {
        Ok(Decoded::Frame(frame)) => frame,
        other => panic!("no frame but {other:?}"),
    }
}

#[test]
fn a_request_is_laid_out_as_the_protocol_says() {
    let mut buffer = BytesMut::new();
    FrameBuilder::request(Opcode::Add)
        .vbucket(0x0102)
        .opaque(0x0304_0506)
        .cas(7)
        .datatype(Datatype::JSON)
        .extras(StoreExtras {
            flags: 0xdead_beef,
            expiry: 0xe10,
        })
        .key(DocumentKey::new(CollectionId(555), b"Hello"))
        .value(b"World")
        .encode(&mut buffer)
        .unwrap();
    let expected = b"\x80\x02\0\x07\x08\x01\x01\x02\0\0\0\x14\x03\x04\x05\x06\0\0\0\0\0\0\0\x07\
                     \xde\xad\xbe\xef\0\0\x0e\x10\xab\x04HelloWorld";
    assert_eq!(&buffer[..], expected);

    let frame = frame(FrameDecoder::from_client(), &mut buffer);
    assert!(buffer.is_empty());
    assert_eq!(frame.header().magic, Magic::Request);
    assert_eq!((frame.opcode(), frame.vbucket()), (Opcode::Add, 0x0102));
    assert_eq!((frame.opaque(), frame.header().cas), (0x0304_0506, 7));
    assert_eq!(frame.header().datatype, Datatype::JSON);
    assert_eq!(StoreExtras::decode(frame.extras()).unwrap().expiry, 0xe10);
    assert_eq!(DocumentKey::decode(frame.key(), true).unwrap().id, b"Hello");
    assert_eq!(frame.value(), b"World");
    assert_eq!(frame.framing_extras(), b"");
}

#[test]
fn framing_extras_make_a_frame_flexible() {
    let mut buffer = BytesMut::new();
    let durability = RequestFrameInfo::Durability(Durability::new(DurabilityLevel::Majority));
    FrameBuilder::request(Opcode::Set)
        .framing([durability, RequestFrameInfo::PreserveTtl])
        .extras(b"12345678")
        .key(b"foo")
        .value(b"bar")
        .encode(&mut buffer)
        .unwrap();
    let expected = b"\x08\x01\x03\x03\x08\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\0\0\0\0\0\
                     \x11\x01\x5012345678foobar";
    assert_eq!(&buffer[..], expected);
    let request = frame(FrameDecoder::from_client(), &mut buffer);
    let infos: Vec<_> = request.request_frame_infos().map(Result::unwrap).collect();
    assert_eq!(infos, [durability, RequestFrameInfo::PreserveTtl]);
    assert_eq!((request.key(), request.value()), (&b"foo"[..], &b"bar"[..]));

    let took = ResponseFrameInfo::ServerDuration(ServerDuration::from_code(0x0102));
    FrameBuilder::reply(&request, Status::Success)
        .framing(took)
        .encode(&mut buffer)
        .unwrap();
    assert_eq!(&buffer[..6], b"\x18\x01\x03\0\0\0");
    assert_eq!(&buffer[HEADER_LEN..], b"\x02\x01\x02");
    let response = frame(FrameDecoder::from_server(), &mut buffer);
    assert_eq!(response.status(), Status::Success);
}

#[test]
fn an_empty_row_of_frame_infos_leaves_the_classic_format() {
    let mut buffer = BytesMut::new();
    let none: &[RequestFrameInfo<'_>] = &[];
    FrameBuilder::request(Opcode::Noop)
        .framing(none)
        .encode(&mut buffer)
        .unwrap();
    assert_eq!(buffer[0], Magic::Request.code());
}

#[test]
fn an_answer_goes_the_other_way_with_the_same_opaque() {
    let mut buffer = BytesMut::new();
    FrameBuilder::request(Opcode::Get)
        .opaque(9)
        .encode(&mut buffer)
        .unwrap();
    let request = frame(FrameDecoder::from_client(), &mut buffer);
    FrameBuilder::reply(request.header(), Status::NotMyVbucket)
        .encode(&mut buffer)
        .unwrap();
    let response = frame(FrameDecoder::from_server(), &mut buffer);
    assert_eq!(response.header().magic, Magic::Response);
    assert_eq!(
        (response.opcode(), response.opaque(), response.status()),
        (Opcode::Get, 9, Status::NotMyVbucket)
    );

    let notification = ServerOpcode::ClustermapChangeNotification;
    FrameBuilder::server_request(notification)
        .opaque(3)
        .encode(&mut buffer)
        .unwrap();
    let request = frame(FrameDecoder::from_server(), &mut buffer);
    assert_eq!(request.server_opcode(), notification);
    FrameBuilder::reply(&request, Status::Success)
        .encode(&mut buffer)
        .unwrap();
    let response = frame(FrameDecoder::from_client(), &mut buffer);
    assert_eq!(response.header().magic, Magic::ClientResponse);
    assert_eq!(
        (response.server_opcode(), response.opaque()),
        (notification, 3)
    );
}

#[test]
fn a_status_that_has_no_name_arrives_as_it_was_sent() {
    let mut buffer = BytesMut::new();
    let status = Status::from_code(0xfff0);
    FrameBuilder::response(Opcode::Get, status)
        .vbucket(5)
        .encode(&mut buffer)
        .unwrap();
    assert_eq!(
        frame(FrameDecoder::from_server(), &mut buffer).status(),
        status
    );
}

#[test]
fn every_prefix_of_a_frame_asks_for_more_and_takes_nothing() {
    let mut whole = BytesMut::new();
    FrameBuilder::request(Opcode::Set)
        .key(b"foo")
        .value(b"bar")
        .encode(&mut whole)
        .unwrap();
    for len in 0..whole.len() {
        let mut buffer = BytesMut::from(&whole[..len]);
        let missing = if len < HEADER_LEN {
            HEADER_LEN
        } else {
            whole.len()
        } - len;
        assert_eq!(
            FrameDecoder::from_client().decode(&mut buffer),
            Ok(Decoded::NeedMore(missing))
        );
        assert_eq!(buffer.len(), len);
    }
}

#[test]
fn what_follows_a_frame_stays_in_the_buffer() {
    let mut buffer = BytesMut::new();
    for opaque in 0..3 {
        FrameBuilder::request(Opcode::Noop)
            .opaque(opaque)
            .encode(&mut buffer)
            .unwrap();
    }
    for opaque in 0..3 {
        assert_eq!(
            frame(FrameDecoder::from_client(), &mut buffer).opaque(),
            opaque
        );
    }
    let empty = FrameDecoder::from_client().decode(&mut buffer);
    assert_eq!(empty, Ok(Decoded::NeedMore(HEADER_LEN)));
}

#[test]
fn a_peer_that_speaks_something_else_is_noticed_at_its_first_byte() {
    for text in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"G",
        b"GET /a/longer/path HTTP/1.1\r\n\r\n",
    ] {
        let mut buffer = BytesMut::from(text);
        let error = FrameDecoder::from_client().decode(&mut buffer).unwrap_err();
        assert_eq!(error, FrameError::UnknownMagic(b'G'));
        assert_eq!(error.to_string(), "a frame cannot start with 0x47");
        assert_eq!(&buffer[..], text);
    }
}

#[test]
fn each_side_accepts_only_what_the_other_may_send() {
    for magic in [0x80, 0x08, 0x81, 0x18, 0x82, 0x83] {
        let magic = Magic::from_code(magic).unwrap();
        for len in [1, HEADER_LEN] {
            let mut bytes = [0; HEADER_LEN];
            bytes[0] = magic.code();
            let mut buffer = BytesMut::from(&bytes[..len]);
            let (right, wrong) = if magic.is_from_client() {
                (FrameDecoder::from_client(), FrameDecoder::from_server())
            } else {
                (FrameDecoder::from_server(), FrameDecoder::from_client())
            };
            assert_eq!(
                wrong.decode(&mut buffer),
                Err(FrameError::WrongDirection(magic))
            );
            assert!(right.decode(&mut buffer).is_ok());
        }
    }
    assert_eq!(
        FrameError::WrongDirection(Magic::Response).to_string(),
        "Response frames (0x81) are never sent in this direction"
    );
}

#[test]
fn a_body_over_the_limit_is_rejected_by_its_header_alone() {
    let header = |body_len| {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = 0x80;
        bytes[8..12].copy_from_slice(&u32::to_be_bytes(body_len));
        BytesMut::from(&bytes[..])
    };
    let decoder = FrameDecoder::from_client();
    let needed = Ok(Decoded::NeedMore(DEFAULT_MAX_BODY as usize));
    assert_eq!(decoder.decode(&mut header(DEFAULT_MAX_BODY)), needed);
    let error = decoder
        .decode(&mut header(DEFAULT_MAX_BODY + 1))
        .unwrap_err();
    let (body_len, max) = (DEFAULT_MAX_BODY + 1, DEFAULT_MAX_BODY);
    assert_eq!(
        error,
        FrameError::BodyTooLong {
            opcode: 0,
            body_len,
            max
        }
    );
    assert!(decoder.with_max_body(9).decode(&mut header(10)).is_err());
    assert!(
        decoder
            .with_max_body(u32::MAX)
            .decode(&mut header(u32::MAX))
            .is_ok()
    );
}

#[test]
fn sections_that_exceed_the_body_are_rejected() {
    let mut bytes = [0; HEADER_LEN];
    bytes[..5].copy_from_slice(&[0x08, 0x01, 2, 3, 4]);
    bytes[11] = 8;
    let error = FrameDecoder::from_client()
        .decode(&mut BytesMut::from(&bytes[..]))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "opcode 0x01: framing extras (2), extras (4) and key (3) exceed the body (8)"
    );
    bytes[11] = 9;
    assert!(Header::decode(&bytes).is_ok());
}

#[test]
fn a_message_that_does_not_fit_the_format_is_rejected_and_leaves_the_buffer_unchanged() {
    let mut buffer = BytesMut::from(&b"before"[..]);
    let request = FrameBuilder::request(Opcode::Get);
    let errors = [
        request.extras(vec![0; 256]).encode(&mut buffer),
        request.framing(vec![0; 256]).encode(&mut buffer),
        request.key(vec![0; 65_536]).encode(&mut buffer),
        // A key of 256 bytes fits the classic format only.
        request.framing([0; 1]).key([0; 256]).encode(&mut buffer),
    ];
    for error in errors {
        assert!(
            matches!(error, Err(EncodeError::TooLong { .. })),
            "{error:?}"
        );
    }
    let notification = FrameBuilder::server_request(ServerOpcode::ClustermapChangeNotification);
    assert_eq!(
        notification.framing([0; 1]).encode(&mut buffer),
        Err(EncodeError::NoFraming)
    );
    assert_eq!(&buffer[..], b"before");
    assert!(request.key([0; 256]).encode(&mut buffer).is_ok());
}

#[test]
fn sections_taken_as_bytes_share_the_buffer() {
    let mut buffer = BytesMut::new();
    FrameBuilder::request(Opcode::Set)
        .key(b"foo")
        .value(b"bar")
        .encode(&mut buffer)
        .unwrap();
    let frame = frame(FrameDecoder::from_client(), &mut buffer);
    let (key, value) = (frame.share(frame.key()), frame.value_bytes());
    assert_eq!(
        (key.as_ptr(), &key[..]),
        (frame.key().as_ptr(), &b"foo"[..])
    );
    assert_eq!(
        (value.as_ptr(), &value[..]),
        (frame.value().as_ptr(), &b"bar"[..])
    );
    let address = frame.value().as_ptr();
    assert_eq!(frame.into_value().as_ptr(), address);
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..=max)
}

proptest! {
    #[test]
    fn any_frame_round_trips_however_it_arrives(
        code: u8, number: u16, opaque: u32, cas: u64, datatype: u8,
        framing in bytes(255), extras in bytes(255), key in bytes(255), value in bytes(2000),
        kind in 0..3, chunk in 1..100_usize,
    ) {
        let (status, server_opcode) = (Status::from_code(number), ServerOpcode::from_code(code));
        let (builder, decoder) = match kind {
            0 => (FrameBuilder::request(code.into()).vbucket(number), FrameDecoder::from_client()),
            1 => (FrameBuilder::response(code.into(), status), FrameDecoder::from_server()),
            _ => (FrameBuilder::server_request(server_opcode).vbucket(number), FrameDecoder::from_server()),
        };
        let framing = if kind < 2 { framing } else { Vec::new() };
        let mut whole = BytesMut::new();
        builder
            .opaque(opaque)
            .cas(cas)
            .datatype(Datatype::from_bits_retain(datatype))
            .framing(&framing[..])
            .extras(&extras[..])
            .key(&key[..])
            .value(&value[..])
            .encode(&mut whole)
            .unwrap();

        let mut buffer = BytesMut::new();
        let mut chunks = whole.chunks(chunk);
        let frame = loop {
            match decoder.decode(&mut buffer).unwrap() {
                Decoded::Frame(frame) => break frame,
                Decoded::NeedMore(missing) => {
                    prop_assert!(missing > 0 && missing <= whole.len() - buffer.len());
                    buffer.extend_from_slice(chunks.next().unwrap());
                }
            }
        };
        let header = frame.header();
        prop_assert_eq!((header.opcode, header.opaque, header.cas), (code, opaque, cas));
        prop_assert_eq!((header.vbucket_or_status, header.datatype.bits()), (number, datatype));
        prop_assert_eq!(header.magic.is_flexible(), !framing.is_empty());
        prop_assert_eq!(frame.framing_extras(), &framing[..]);
        prop_assert_eq!(frame.extras(), &extras[..]);
        prop_assert_eq!(frame.key(), &key[..]);
        prop_assert_eq!(frame.value(), &value[..]);
        prop_assert_eq!(&header.encode()[..], &whole[..HEADER_LEN]);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut input in bytes(200), magic in 0..8_usize, client: bool) {
        if let (Some(first), Some(magic)) = (input.first_mut(), [0x80, 0x08, 0x81, 0x18, 0x82, 0x83].get(magic)) {
            *first = *magic;
        }
        let decoder = if client { FrameDecoder::from_client() } else { FrameDecoder::from_server() };
        let mut buffer = BytesMut::from(&input[..]);
        while let Ok(Decoded::Frame(frame)) = decoder.decode(&mut buffer) {
            let sections = [frame.framing_extras(), frame.extras(), frame.key(), frame.value()];
            prop_assert_eq!(sections.concat(), frame.body());
        }
    }
}
