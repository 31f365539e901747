use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMITS: SizeLimits = SizeLimits {
    row: 1 << 16,
    members: 1 << 16,
};

/// Splits a response that comes in these pieces.
fn split<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: SizeLimits,
) -> Result<(Vec<Bytes>, Splitter), ReadError> {
    let mut splitter = Splitter::new("results", limits);
    let mut rows = Vec::new();
    for piece in pieces {
        splitter.push(Bytes::copy_from_slice(piece));
        while let Some(row) = splitter.next_row()? {
            rows.push(row);
        }
    }
    splitter.finish()?;
    Ok((rows, splitter))
}

fn whole(text: &str) -> Result<(Vec<Bytes>, Splitter), ReadError> {
    split([text.as_bytes()], LIMITS)
}

#[test]
fn rows_and_members_are_separated() {
    let text = r#" {"requestID": "r", "results" : [ {"a":[1,"]"]}, 2 ,"x",null],
        "status":"success", "metrics":{"n":1}} "#;
    let (rows, splitter) = whole(text).unwrap();
    assert_eq!(rows, [&br#"{"a":[1,"]"]}"#[..], b"2", b"\"x\"", b"null"]);
    let members = splitter.members();
    assert_eq!(members.get("status"), Ok(Some("success".to_owned())));
    assert_eq!(members.get("metrics"), Ok(Some(json!({"n": 1}))));
    assert_eq!(members.get::<Value>("results"), Ok(None));
    let misread = members.get::<u64>("status").unwrap_err();
    assert!(misread.contains("\"status\" has another shape"));
}

#[test]
fn missing_rows_are_an_empty_array_or_null() {
    for text in [r#"{"results":[]}"#, r#"{"results": null}"#] {
        assert!(whole(text).unwrap().0.is_empty());
    }
}

#[test]
fn invalid_responses_are_rejected_with_the_position() {
    for (text, problem) in [
        ("", "breaks off"),
        ("[1]", "no JSON object"),
        ("hello", "no JSON object"),
        ("{", "breaks off"),
        (r#"{"results":[1"#, "breaks off"),
        (r#"{"results":[1]"#, "breaks off"),
        (r#"{"results":[1}"#, "neither a comma nor an end"),
        (r#"{"results":[1,]}"#, "no JSON value"),
        (r#"{"results":[,1]}"#, "no JSON value"),
        (r#"{"results":[1 2]}"#, "neither a comma nor an end"),
        (r#"{"results":{}}"#, "no array"),
        (r#"{"results":nope}"#, "no array"),
        (r#"{"results":[],"results":[]}"#, "twice"),
        (r#"{"a":1,"a":2,"results":[]}"#, "twice"),
        (r#"{"a" 1}"#, "no colon"),
        (r#"{"a":1,}"#, "no name"),
        (r#"{1:1}"#, "no name"),
        (r#"{"\q":1}"#, "no name"),
        (r#"{"results":[]}}"#, "more after its end"),
        (r#"{"status":"success"}"#, "no rows"),
        (r#"{"results":[[}]]}"#, "brackets do not match"),
    ] {
        let error = whole(text).unwrap_err();
        assert!(error.to_string().contains(problem), "{text}: {error}");
    }
}

#[test]
fn the_number_of_members_is_bounded() {
    let answer = |members: usize| {
        let members: String = (0..members).map(|at| format!(r#""{at}":1,"#)).collect();
        whole(&format!(r#"{{{members}"results":[]}}"#))
    };
    assert!(answer(256).is_ok());
    let error = answer(257).unwrap_err().to_string();
    assert!(error.contains("too many members"), "{error}");
}

#[test]
fn rows_members_and_depth_are_bounded() {
    let limits = SizeLimits {
        row: 10,
        members: 40,
    };
    let bounded = |text: &str| {
        let split = split(text.as_bytes().chunks(3), limits);
        split.map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(bounded(r#"{"results":["12345678"]}"#), Ok(()));
    let row = bounded(r#"{"results":["123456789"]}"#).unwrap_err();
    assert!(row.contains("a row is too long"), "{row}");
    let member = bounded(&format!(r#"{{"a":"{}"}}"#, "x".repeat(50))).unwrap_err();
    assert!(member.contains("too much around"), "{member}");
    let many: String = (0..20).map(|at| format!(r#""m{at}":1,"#)).collect();
    let members = bounded(&format!(r#"{{{many}"results":[]}}"#)).unwrap_err();
    assert!(members.contains("too much around"), "{members}");
    let name = bounded(&format!(r#"{{"{}":1}}"#, "x".repeat(50))).unwrap_err();
    assert!(name.contains("too much around"), "{name}");
    let deep = whole(&format!(r#"{{"results":[{}"#, "[".repeat(200))).unwrap_err();
    assert!(deep.to_string().contains("too deeply"), "{deep}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(json!("]}\",\\")),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,5}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same bytes in pieces that end at these positions.
fn pieces<'a>(bytes: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for cut in cuts.into_iter().chain([bytes.len()]) {
        pieces.push(&bytes[from..cut]);
        from = cut;
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_do_not_depend_on_how_the_response_is_cut(
        rows in prop::collection::vec(any_json(), 0..8),
        head in any_json(),
        tail in any_json(),
        pretty in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (head, tail) = (json!([head]), json!([tail]));
        let answer = json!({"head": head, "results": rows, "tail": tail});
        let text = if pretty {
            serde_json::to_string_pretty(&answer).unwrap()
        } else {
            answer.to_string()
        };
        let (found, splitter) = split(pieces(text.as_bytes(), &cuts), LIMITS).unwrap();
        let found: Vec<Value> =
            found.iter().map(|row| serde_json::from_slice(row).unwrap()).collect();
        prop_assert_eq!(found, rows);
        prop_assert_eq!(splitter.members().get("head"), Ok(Some(head)));
        prop_assert_eq!(splitter.members().get("tail"), Ok(Some(tail)));
    }

    #[test]
    fn a_cut_response_is_never_complete(
        rows in prop::collection::vec(any_json(), 0..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = json!({"results": rows, "status": "success"}).to_string();
        let half = &text.as_bytes()[..cut.index(text.len())];
        prop_assert!(split([half], LIMITS).is_err());
    }

    #[test]
    fn garbage_never_panics(
        bytes in prop::collection::vec(
            prop_oneof![prop::sample::select(&br#"{}[]",:\ "ru1null results"#[..]), any::<u8>()],
            0..200,
        ),
        head in prop::sample::select(vec!["", "{", r#"{"results":["#, r#"{"results":[{"a":"#]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let bytes = [head.as_bytes(), &bytes].concat();
        let limits = SizeLimits { row: 64, members: 64 };
        let at_once = split([&bytes[..]], limits).map(|(rows, _)| rows);
        let in_pieces = split(pieces(&bytes, &cuts), limits).map(|(rows, _)| rows);
        match (at_once, in_pieces) {
            (Ok(at_once), Ok(in_pieces)) => prop_assert_eq!(at_once, in_pieces),
            (Err(_), Err(_)) => {}
            (at_once, in_pieces) => prop_assert!(false, "{:?} and {:?}", at_once, in_pieces),
        }
    }
}
