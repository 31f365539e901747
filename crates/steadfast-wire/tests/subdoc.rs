//! Multi-path bodies, both ways.

use bytes::BytesMut;
use proptest::prelude::*;
use steadfast_wire::subdoc::{
    LookupResult, LookupSpec, MutationOutcome, MutationSpec, PathFlags, PathMutationResult,
};
use steadfast_wire::{DecodeError, Encode, Entries, Opcode, ReadEntry, Status};

fn encode(body: impl Encode) -> BytesMut {
    let mut out = BytesMut::new();
    body.append_to(&mut out).expect("every part fits its field");
    out
}

fn decode<'a, T: ReadEntry<'a>>(bytes: &'a [u8]) -> Result<Vec<T>, DecodeError> {
    Entries::new(bytes).collect()
}

#[test]
fn lookups_are_laid_out_as_the_protocol_says() {
    let specs = [
        LookupSpec {
            opcode: Opcode::SubdocGet,
            flags: PathFlags::XATTR,
            path: b"_sync",
        },
        LookupSpec {
            opcode: Opcode::Get,
            flags: PathFlags::empty(),
            path: b"",
        },
    ];
    let body = encode(specs);
    assert_eq!(&body[..], b"\xc5\x04\0\x05_sync\x00\x00\0\0");
    assert_eq!(decode::<LookupSpec<'_>>(&body).unwrap(), specs);

    let results = [
        LookupResult {
            status: Status::Success,
            value: b"42",
        },
        LookupResult {
            status: Status::SubdocPathNotFound,
            value: b"",
        },
    ];
    let body = encode(results);
    assert_eq!(&body[..], b"\0\0\0\0\0\x0242\0\xc0\0\0\0\0");
    assert_eq!(decode::<LookupResult<'_>>(&body).unwrap(), results);
}

#[test]
fn mutations_are_laid_out_as_the_protocol_says() {
    let specs = [MutationSpec {
        opcode: Opcode::SubdocDictUpsert,
        flags: PathFlags::CREATE_PARENTS,
        path: b"a.b",
        value: b"true",
    }];
    let body = encode(specs);
    assert_eq!(&body[..], b"\xc8\x01\0\x03\0\0\0\x04a.btrue");
    assert_eq!(decode::<MutationSpec<'_>>(&body).unwrap(), specs);

    let results = [PathMutationResult {
        index: 2,
        status: Status::Success,
        value: b"7",
    }];
    let body = encode(results);
    assert_eq!(&body[..], b"\x02\0\0\0\0\0\x017");
    assert_eq!(decode::<PathMutationResult<'_>>(&body).unwrap(), results);
}

#[test]
fn the_status_of_the_answer_tells_how_to_read_it() {
    let done = encode([PathMutationResult {
        index: 1,
        status: Status::Success,
        value: b"5",
    }]);
    for status in [Status::Success, Status::SubdocSuccessDeleted] {
        let Ok(Some(MutationOutcome::Done(results))) = MutationOutcome::decode(status, &done)
        else {
            panic!("{status}");
        };
        assert_eq!(
            results
                .map(|result| result.unwrap().index)
                .collect::<Vec<_>>(),
            [1]
        );
    }
    let failed = MutationOutcome::failure_body(3, Status::SubdocPathExists);
    for status in [
        Status::SubdocMultiPathFailure,
        Status::SubdocMultiPathFailureDeleted,
    ] {
        let outcome = MutationOutcome::decode(status, &failed).unwrap();
        assert!(matches!(
            outcome,
            Some(MutationOutcome::Failed {
                index: 3,
                status: Status::SubdocPathExists
            })
        ));
        for malformed in [&failed[..2], b"\x03\0\xc9\0"] {
            assert!(MutationOutcome::decode(status, malformed).is_err());
        }
    }
    assert!(
        MutationOutcome::decode(Status::KeyNotFound, b"anything")
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_length_beyond_the_body_is_an_error_that_names_the_field_and_ends_the_row() {
    fn problem(result: Option<Result<MutationSpec<'_>, DecodeError>>) -> String {
        result.unwrap().unwrap_err().to_string()
    }
    let mut specs = Entries::new(b"\xc8\x01\0\x03\xff\xff\xff\xffa.btrue");
    assert_eq!(
        problem(specs.next()),
        "the value of a mutation needs 4294967295 bytes and has 4"
    );
    assert!(specs.next().is_none());
    let mut specs = Entries::new(b"\xc8\x01\0\x09\0\0\0\0a.b");
    assert_eq!(
        problem(specs.next()),
        "the path of a mutation needs 9 bytes and has 3"
    );
}

#[test]
fn a_path_too_long_for_its_field_is_not_encoded() {
    let path = vec![b'a'; 65_536];
    let spec = LookupSpec {
        opcode: Opcode::SubdocGet,
        flags: PathFlags::empty(),
        path: &path,
    };
    assert!([spec].measure().is_err());
}

proptest! {
    #[test]
    fn any_specs_and_results_round_trip(
        entries in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u16>(), any::<Vec<u8>>(), any::<Vec<u8>>()), 0..6),
    ) {
        let lookups: Vec<_> = entries.iter().map(|(opcode, flags, _, path, _)| LookupSpec {
            opcode: Opcode::from_code(*opcode), flags: PathFlags::from_bits_retain(*flags), path,
        }).collect();
        let body = encode(&lookups[..]);
        prop_assert_eq!(decode::<LookupSpec<'_>>(&body).unwrap(), lookups);

        let mutations: Vec<_> = entries.iter().map(|(opcode, flags, _, path, value)| MutationSpec {
            opcode: Opcode::from_code(*opcode), flags: PathFlags::from_bits_retain(*flags), path, value,
        }).collect();
        let body = encode(&mutations[..]);
        prop_assert_eq!(decode::<MutationSpec<'_>>(&body).unwrap(), mutations);

        let found: Vec<_> = entries.iter().map(|(_, _, status, _, value)| LookupResult {
            status: Status::from_code(*status), value,
        }).collect();
        let body = encode(&found[..]);
        prop_assert_eq!(decode::<LookupResult<'_>>(&body).unwrap(), found);

        let done: Vec<_> = entries.iter().map(|(index, _, status, _, value)| PathMutationResult {
            index: *index, status: Status::from_code(*status), value,
        }).collect();
        let body = encode(&done[..]);
        prop_assert_eq!(decode::<PathMutationResult<'_>>(&body).unwrap(), done);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, status: u16) {
        let _ = decode::<LookupSpec<'_>>(&bytes);
        let _ = decode::<LookupResult<'_>>(&bytes);
        let _ = decode::<MutationSpec<'_>>(&bytes);
        let _ = decode::<PathMutationResult<'_>>(&bytes);
        let _ = MutationOutcome::decode(Status::from_code(status), &bytes);
    }
}
