use std::time::UNIX_EPOCH;

use http::HeaderValue;
use proptest::prelude::*;

use super::*;

fn hint(name: &'static str, value: impl AsRef<[u8]>) -> Hint {
    let mut headers = HeaderMap::new();
    headers.insert(name, HeaderValue::from_bytes(value.as_ref()).unwrap());
    parse(&headers, at(1_000_000))
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn secs(seconds: u64) -> Hint {
    Hint::Wait(Duration::from_secs(seconds))
}

#[test]
fn seconds_milliseconds_and_dates_are_parsed() {
    assert_eq!(hint("retry-after", "2"), secs(2));
    assert_eq!(hint("retry-after", "0002"), secs(2));
    assert_eq!(
        hint("retry-after-ms", "1500"),
        Hint::Wait(Duration::from_millis(1500))
    );
    assert_eq!(
        hint("x-amz-retry-after", "1500"),
        Hint::Wait(Duration::from_millis(1500))
    );
    assert_eq!(
        hint(PUSHBACK, "1500"),
        Hint::Wait(Duration::from_millis(1500))
    );
    for date in [
        "Mon, 12 Jan 1970 13:46:50 GMT",
        "Monday, 12-Jan-70 13:46:50 GMT",
        "Mon Jan 12 13:46:50 1970",
    ] {
        assert_eq!(hint("retry-after", date), secs(10), "{date}");
    }
}

#[test]
fn zero_and_the_past_ask_for_nothing() {
    assert_eq!(hint("retry-after", "0"), Hint::None);
    assert_eq!(
        hint("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"),
        Hint::None
    );
    assert_eq!(hint("x-amz-retry-after", "0"), Hint::None);
    assert_eq!(hint(PUSHBACK, "0"), Hint::None);
}

#[test]
fn a_delay_that_is_too_long_is_cut() {
    for value in [
        "9".repeat(10_000),
        u64::MAX.to_string(),
        "31622401".to_owned(),
    ] {
        assert_eq!(
            hint("retry-after", &value),
            Hint::Wait(MAX_DELAY),
            "{} digits",
            value.len()
        );
    }
    assert_eq!(
        hint("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
        Hint::Wait(MAX_DELAY)
    );
    assert_eq!(
        hint("retry-after-ms", "9".repeat(10_000)),
        Hint::Wait(MAX_DELAY)
    );
}

#[test]
fn an_invalid_value_is_no_hint_and_names_its_header() {
    for value in [
        "-1",
        "+1",
        "1.5",
        "1e3",
        " 1",
        "1 s",
        "",
        "invalid",
        "Mon, 32 Jan 1970 13:46:50 GMT",
    ] {
        assert_eq!(
            hint("retry-after", value),
            Hint::Unreadable("Retry-After"),
            "{value:?}"
        );
    }
    assert_eq!(
        hint("x-amz-retry-after", "-100"),
        Hint::Unreadable("x-amz-retry-after")
    );
    assert_eq!(
        hint("x-amz-retry-after", "invalid"),
        Hint::Unreadable("x-amz-retry-after")
    );
    assert_eq!(
        hint("retry-after", "２".as_bytes()),
        Hint::Unreadable("Retry-After")
    );
    assert_eq!(
        hint("retry-after-ms", b"\xff\xfe"),
        Hint::Unreadable("retry-after-ms")
    );
}

#[test]
fn a_negative_or_unreadable_pushback_forbids_a_retry() {
    assert_eq!(hint(PUSHBACK, "-1"), Hint::Never(PUSHBACK));
    assert_eq!(hint(PUSHBACK, "soon"), Hint::Never(PUSHBACK));
}

#[test]
fn the_longest_hint_counts_and_a_valid_one_beats_an_invalid_one() {
    let mut headers = HeaderMap::new();
    headers.append("retry-after", "1".parse().unwrap());
    headers.append("retry-after", "3".parse().unwrap());
    headers.insert("retry-after-ms", "2500".parse().unwrap());
    headers.insert("x-amz-retry-after", "garbage".parse().unwrap());
    assert_eq!(parse(&headers, at(0)), secs(3));
    headers.insert(PUSHBACK, "-1".parse().unwrap());
    assert_eq!(parse(&headers, at(0)), Hint::Never(PUSHBACK));
}

const NAMES: [&str; 5] = [
    "retry-after",
    "retry-after-ms",
    "x-amz-retry-after",
    PUSHBACK,
    "grpc-status-details-bin",
];

proptest! {
    #[test]
    fn no_bytes_cause_a_panic_or_a_delay_beyond_the_maximum(
        name in proptest::sample::select(NAMES.to_vec()),
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..200),
            "-?[0-9]{1,10000}".prop_map(String::into_bytes),
            "[A-Za-z0-9+/]{0,300}={0,2}".prop_map(String::into_bytes),
            "(Mon|Fri|Sunday), [0-9]{2}[ -](Jan|Feb|Foo)[ -][0-9]{2,5} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
                .prop_map(String::into_bytes),
        ],
        now in 0..400_000_000_000_u64,
    ) {
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            if let Hint::Wait(delay) = parse(&headers, at(now)) {
                prop_assert!(!delay.is_zero() && delay <= MAX_DELAY);
            }
        }
    }
}

/// The server's clock is an hour ahead or behind.
#[test]
fn a_date_is_read_against_the_date_of_the_response() {
    let text = |seconds: u64| {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
            .parse::<http::HeaderValue>()
            .unwrap()
    };
    let now = UNIX_EPOCH + Duration::from_secs(10_000);
    for server in [6_400, 10_000, 13_600] {
        let mut headers = HeaderMap::new();
        headers.insert("date", text(server));
        headers.insert("retry-after", text(server + 7));
        assert_eq!(parse(&headers, now), Hint::Wait(Duration::from_secs(7)));
        headers.insert("retry-after", text(server - 7));
        assert_eq!(parse(&headers, now), Hint::None);
        headers.insert("retry-after", "9".parse().unwrap());
        assert_eq!(parse(&headers, now), Hint::Wait(Duration::from_secs(9)));
    }
    // An unreadable date is ignored.
    let mut headers = HeaderMap::new();
    headers.insert("date", "yesterday".parse().unwrap());
    headers.insert("retry-after", text(10_007));
    assert_eq!(parse(&headers, now), Hint::Wait(Duration::from_secs(7)));
}
