//! The error map, from the JSON that servers send and back to it.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use steadfast_wire::error_map::{
    Attributes, ErrorDefinition, ErrorMap, ErrorMapBackoff, ErrorMapRequest, MapVersion, RetrySpec,
};
use steadfast_wire::{Feature, Opcode, Status};

fn parse(json: &Value) -> Result<ErrorMap, String> {
    ErrorMap::parse(json.to_string().as_bytes()).map_err(|error| error.to_string())
}

/// The example of RFC 0013. The third definition has the fields of its specification next to
/// instead of in `retry`, as the RFC does.
fn example() -> Value {
    json!({
        "version": 1,
        "revision": 4,
        "errors": {
            "fff0": {
                "name": "DUMMY_ERROR_RETRY_CONSTANT",
                "desc": "Dummy retry error for constant backoff",
                "attrs": ["auto-retry", "temp"],
                "retry": {"strategy": "constant", "interval": 25, "after": 10, "max-duration": 1500}
            },
            "fff1": {
                "name": "DUMMY_ERROR_RETRY_LINEAR",
                "desc": "Dummy retry error for linear backoff",
                "attrs": ["auto-retry", "temp"],
                "retry": {"strategy": "linear", "interval": 10, "after": 10, "max-duration": 1500, "ceil": 200}
            },
            "fff2": {
                "name": "DUMMY_ERROR_RETRY_EXPONENTIAL",
                "desc": "Dummy retry error for exponential backoff",
                "attrs": ["auto-retry", "temp"],
                "interval": 2, "after": 10, "max-duration": 1500, "ceil": 500
            }
        }
    })
}

#[test]
fn the_example_of_the_rfc_is_read() {
    let map = parse(&example()).unwrap();
    assert_eq!(
        (map.version, map.revision, map.errors.len()),
        (MapVersion::V1, 4, 3)
    );
    let linear = map.get(Status::from_code(0xfff1)).unwrap();
    assert_eq!(linear.name, "DUMMY_ERROR_RETRY_LINEAR");
    assert_eq!(linear.attributes, Attributes::AUTO_RETRY | Attributes::TEMP);
    assert_eq!(
        linear.retry,
        Some(RetrySpec {
            strategy: ErrorMapBackoff::Linear,
            interval: Duration::from_millis(10),
            after: Duration::from_millis(10),
            max_duration: Some(Duration::from_millis(1500)),
            ceil: Some(Duration::from_millis(200)),
        })
    );
    assert_eq!(
        map.get(Status::from_code(0xfff0))
            .unwrap()
            .retry
            .unwrap()
            .ceil,
        None
    );
    // The sample has the specification next to the attributes, and no strategy in it.
    let flat = RetrySpec {
        strategy: ErrorMapBackoff::Exponential,
        interval: Duration::from_millis(2),
        after: Duration::from_millis(10),
        max_duration: Some(Duration::from_millis(1500)),
        ceil: Some(Duration::from_millis(500)),
    };
    assert_eq!(
        map.get(Status::from_code(0xfff2)).unwrap().retry,
        Some(flat)
    );
    assert_eq!(map.get(Status::from_code(0xfff3)), None);
}

#[test]
fn unknown_members_are_ignored() {
    let mut json = example();
    json["new"] = json!([1]);
    json["errors"]["fff0"]["attrs"] = json!(["temp", "from-the-future"]);
    json["errors"]["fff0"]["retry"]["strategy"] = json!("fibonacci");
    json["errors"]["fff1"]["retry"]["jitter"] = json!("full");
    json["errors"]["fff3"] = json["errors"]["fff0"].clone();
    json["errors"]["fff3"]["attrs"] = json!(["temp", "auto-retry"]);
    json["errors"]["fff4"] = json["errors"]["fff3"].clone();
    json["errors"]["fff4"]["attrs"] = json!(["auto-retry", "retry-later"]);
    let map = parse(&json).unwrap();
    // A specification with an unknown strategy counts as absent, and `auto-retry` alone
    // indicates no retry.
    let unknown = map.get(Status::from_code(0xfff3)).unwrap();
    assert_eq!(
        (unknown.attributes, unknown.retry),
        (Attributes::TEMP | Attributes::AUTO_RETRY, None)
    );
    assert!(!unknown.indicates_retry());
    let known = map.get(Status::from_code(0xfff4)).unwrap();
    assert_eq!(
        known.attributes,
        Attributes::RETRY_LATER | Attributes::AUTO_RETRY
    );
    assert!(known.indicates_retry());
    let definition = map.get(Status::from_code(0xfff0)).unwrap();
    assert_eq!(
        (definition.attributes, definition.retry),
        (Attributes::TEMP, None)
    );
    assert!(map.get(Status::from_code(0xfff1)).unwrap().retry.is_some());
}

#[test]
fn a_maximum_duration_of_zero_is_none() {
    let mut json = example();
    json["errors"]["fff0"]["retry"]["max-duration"] = json!(0);
    let map = parse(&json).unwrap();
    assert_eq!(
        map.get(Status::from_code(0xfff0))
            .unwrap()
            .retry
            .unwrap()
            .max_duration,
        None
    );
}

#[test]
fn a_corrupt_map_is_rejected_with_the_place() {
    let cases: [(&str, Value, &str); 11] = [
        ("/version", json!(3), "version 3 is neither 1 nor 2"),
        ("/version", json!(0), "version 0 is neither 1 nor 2"),
        ("/revision", json!("x"), "invalid type"),
        (
            "/errors",
            json!([]),
            "error definitions by hexadecimal code",
        ),
        (
            "/errors",
            json!({"0x1": {}}),
            "\"0x1\" is not a status code",
        ),
        (
            "/errors",
            json!({"10000": {}}),
            "\"10000\" is not a status code",
        ),
        (
            "/errors/fff0",
            json!({"desc": "", "attrs": []}),
            "status \"fff0\": missing field `name`",
        ),
        (
            "/errors/fff0/attrs",
            json!(["temp", 1]),
            "status \"fff0\": invalid type",
        ),
        (
            "/errors/fff0/retry",
            json!({"strategy": "linear", "after": 1}),
            "status \"fff0\": missing field `interval`",
        ),
        (
            "/errors/fff0/retry/after",
            json!(-1),
            "status \"fff0\": invalid value",
        ),
        (
            "/errors/fff0/retry/interval",
            json!(0.5),
            "status \"fff0\": invalid type",
        ),
    ];
    for (place, value, problem) in cases {
        let mut json = example();
        *json.pointer_mut(place).unwrap() = value;
        let error = parse(&json).unwrap_err();
        assert!(error.starts_with("the error map is malformed: "), "{error}");
        assert!(error.contains(problem), "{place}: {error}");
    }
    let twice = br#"{"version":1,"revision":1,"errors":{
        "1":{"name":"a","desc":"","attrs":[]},"01":{"name":"b","desc":"","attrs":[]}}}"#;
    let error = ErrorMap::parse(twice).unwrap_err().to_string();
    assert!(error.contains("status \"01\" is there twice"), "{error}");
}

#[test]
fn a_retry_specification_needs_a_strategy_an_interval_and_an_initial_wait() {
    for (field, required) in [
        ("strategy", true),
        ("interval", true),
        ("after", true),
        ("max-duration", false),
        ("ceil", false),
    ] {
        let mut json = example();
        let specification = json["errors"]["fff1"]["retry"].as_object_mut().unwrap();
        specification.remove(field).unwrap();
        match parse(&json) {
            Err(error) if required => {
                let problem = format!("status \"fff1\": missing field `{field}`");
                assert!(error.contains(&problem), "{error}");
            }
            other => assert!(other.is_ok() && !required, "{field}: {other:?}"),
        }
    }
}

#[test]
fn the_codes_of_the_negotiation_are_those_of_the_rfc() {
    assert_eq!(Feature::Xerror.code(), 0x07);
    assert_eq!(Opcode::GetErrorMap.code(), 0xfe);
}

#[test]
fn no_retry_beats_the_attributes_that_ask_for_one() {
    let definition = |attributes| ErrorDefinition {
        name: String::new(),
        description: String::new(),
        attributes,
        retry: Some(RetrySpec {
            strategy: ErrorMapBackoff::Constant,
            interval: Duration::from_millis(1),
            after: Duration::from_millis(1),
            max_duration: None,
            ceil: None,
        }),
    };
    for attribute in [
        Attributes::RETRY_NOW,
        Attributes::RETRY_LATER,
        Attributes::AUTO_RETRY,
    ] {
        assert!(definition(attribute).indicates_retry());
        assert!(!definition(attribute | Attributes::NO_RETRY).indicates_retry());
    }
    assert!(!definition(Attributes::TEMP).indicates_retry());
}

#[test]
fn the_shipped_map_has_83_codes_and_no_retry_specifications() {
    let map = ErrorMap::shipped(MapVersion::V2);
    assert_eq!(
        (map.version.number(), map.revision, map.errors.len()),
        (2, 9, 83)
    );
    assert!(
        map.errors
            .values()
            .all(|definition| definition.retry.is_none())
    );
    let with = |attribute: Attributes| -> Vec<u16> {
        map.errors
            .iter()
            .filter(|(_, d)| d.attributes.contains(attribute))
            .map(|(c, _)| *c)
            .collect()
    };
    assert_eq!(with(Attributes::RETRY_NOW), [0x09, 0x0d, 0x51, 0x85, 0x86]);
    assert_eq!(
        with(Attributes::RETRY_LATER),
        [0x0c, 0x30, 0x31, 0x33, 0x82, 0xa2, 0xa4]
    );
    assert_eq!(
        with(Attributes::NO_RETRY),
        [0x28, 0x29, 0x35, 0x36, 0x37, 0x38]
    );
    assert_eq!(
        with(Attributes::CONN_STATE_INVALIDATED),
        [0x08, 0x0a, 0x0b, 0x1f, 0x20, 0x25, 0x32, 0x84]
    );
    assert_eq!(with(Attributes::FETCH_CONFIG), [0x07, 0x0d]);
    assert_eq!(
        with(Attributes::SPECIAL_HANDLING),
        [0x21, 0x23, 0x26, 0x27, 0xcc, 0xd3]
    );
    assert_eq!(with(Attributes::SUPPORT), [0x24, 0x50, 0x80, 0x81, 0x83]);
    assert_eq!(with(Attributes::SUCCESS), [0x00, 0xa5, 0xa6, 0xa7, 0xcd]);
    assert_eq!(with(Attributes::INTERNAL), [0x04, 0x05, 0x84]);
    assert_eq!(with(Attributes::AUTH), [0x1f, 0x20]);
    assert_eq!(with(Attributes::ITEM_DELETED), [0xcd, 0xd3]);
    assert_eq!(with(Attributes::ITEM_LOCKED), [0x09]);
    assert_eq!(
        with(Attributes::TEMP),
        [0x0c, 0x30, 0x31, 0x33, 0x82, 0x85, 0x86]
    );
    assert_eq!(with(Attributes::RATE_LIMIT), [0x0c, 0x30, 0x31, 0x32, 0x33]);
    assert_eq!(with(Attributes::DCP), [0x23]);
    assert_eq!(with(Attributes::SUBDOC), (0xc0..=0xd8).collect::<Vec<_>>());
    assert_eq!(
        with(Attributes::INVALID_INPUT),
        [
            0x03, 0x04, 0x06, 0x07, 0x22, 0x87, 0x88, 0x8a, 0x8c, 0x8d, 0xa0, 0xa1, 0xa8, 0xc2,
            0xc3, 0xc4, 0xc5, 0xca, 0xcb, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd4, 0xd5
        ]
    );
    assert_eq!(
        with(Attributes::ITEM_ONLY),
        [
            0x01, 0x02, 0x03, 0x05, 0x06, 0x09, 0x0e, 0x0f, 0x28, 0x29, 0x35, 0x36, 0x37, 0x38,
            0x51, 0xa1, 0xa2, 0xa3, 0xa4, 0xc0, 0xc1, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd6, 0xd7,
            0xd8
        ]
    );
}

#[test]
fn statuses_that_count_as_success_are_those_of_the_map() {
    for (code, definition) in &ErrorMap::shipped(MapVersion::V2).errors {
        let marked = definition.attributes.contains(Attributes::SUCCESS);
        assert_eq!(Status::from_code(*code).is_success(), marked, "{code:#x}");
    }
}

#[test]
fn version_1_has_the_same_codes_without_the_newer_attributes() {
    let (v1, v2) = (
        ErrorMap::shipped(MapVersion::V1),
        ErrorMap::shipped(MapVersion::V2),
    );
    assert_eq!((v1.version.number(), v1.revision), (1, 13));
    assert!(v1.errors.keys().eq(v2.errors.keys()));
    let newer = Attributes::RATE_LIMIT | Attributes::SYSTEM_CONSTRAINT | Attributes::NO_RETRY;
    for (code, definition) in &v1.errors {
        assert_eq!(
            definition.attributes,
            v2.errors[code].attributes - newer,
            "{code:#x}"
        );
    }
}

#[test]
fn the_greatest_version_that_the_client_understands_is_answered() {
    assert_eq!(MapVersion::for_request(0), None);
    assert_eq!(MapVersion::for_request(1), Some(MapVersion::V1));
    assert_eq!(MapVersion::for_request(2), Some(MapVersion::V2));
    assert_eq!(MapVersion::for_request(900), Some(MapVersion::V2));
    assert_eq!(ErrorMapRequest { version: 2 }.to_bytes(), [0, 2]);
}

#[test]
fn codes_are_written_in_bare_hexadecimal() {
    let json: Value = serde_json::from_slice(&ErrorMap::shipped(MapVersion::V2).to_json()).unwrap();
    assert_eq!(json["errors"]["1f"]["name"], "AUTH_STALE");
    assert_eq!(json["errors"]["0"]["attrs"], json!(["success"]));
    assert_eq!(
        json["errors"]["9"]["attrs"],
        json!(["item-only", "item-locked", "retry-now"])
    );
}

prop_compose! {
    fn any_retry()(
        strategy in prop::sample::select(vec![
            ErrorMapBackoff::Constant, ErrorMapBackoff::Linear, ErrorMapBackoff::Exponential,
        ]),
        interval: u32, after: u32,
        max_duration in prop::option::of(1..u32::MAX),
        ceil: Option<u32>,
    ) -> RetrySpec {
        let ms = |number: u32| Duration::from_millis(number.into());
        RetrySpec {
            strategy,
            interval: ms(interval),
            after: ms(after),
            max_duration: max_duration.map(ms),
            ceil: ceil.map(ms),
        }
    }
}

prop_compose! {
    fn any_definition()(
        name: String, description: String, bits: u32, retry in prop::option::of(any_retry()),
    ) -> ErrorDefinition {
        ErrorDefinition { name, description, attributes: Attributes::from_bits_truncate(bits), retry }
    }
}

proptest! {
    #[test]
    fn any_map_round_trips(
        v2: bool, revision: u32,
        errors in prop::collection::btree_map(any::<u16>(), any_definition(), 0..6),
    ) {
        let version = if v2 { MapVersion::V2 } else { MapVersion::V1 };
        let map = ErrorMap { version, revision, errors };
        prop_assert_eq!(ErrorMap::parse(&map.to_json()), Ok(map));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = ErrorMap::parse(&bytes);
    }
}
