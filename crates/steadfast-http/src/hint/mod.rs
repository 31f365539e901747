//! Parses the delays that a peer asks for.
//!
//! A hint is untrusted input. Each is parsed strictly, and an invalid one is
//! ignored: the client's own backoff is better than a guess. A delay is cut at
//! [`MAX_DELAY`]. The engine refuses a wait that long, or cuts it at the deadline. A
//! delay of zero and a date in the past ask for nothing.
//!
//! | header | value |
//! |---|---|
//! | `Retry-After` | seconds, or a date by the server's clock (RFC 9110, section 10.2.3) |
//! | `retry-after-ms` | milliseconds |
//! | `x-amz-retry-after` | milliseconds |
//! | `grpc-retry-pushback-ms` | milliseconds; anything else means "do not retry" (gRFC A6) |
//! | `grpc-status-details-bin` | `google.rpc.RetryInfo`, with the feature `grpc` |
//!
//! Of several hints the longest counts.

#[cfg(feature = "grpc")]
pub(crate) mod details;

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The longest delay that a hint can have. Longer ones are cut.
pub const MAX_DELAY: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The delay that the headers of a response ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// None, or zero.
    None,
    /// The shortest delay; never more than [`MAX_DELAY`].
    Wait(Duration),
    /// This header forbids a retry.
    Never(&'static str),
    /// This header is invalid, and no other is valid.
    Unreadable(&'static str),
}

type Parse = fn(&[u8], SystemTime) -> Hint;

const HEADERS: &[(&str, Parse)] = &[
    ("retry-after", |value, now| {
        retry_after(value, now).map_or(Hint::Unreadable("Retry-After"), wait)
    }),
    ("retry-after-ms", |value, _| {
        millis(value).map_or(Hint::Unreadable("retry-after-ms"), wait)
    }),
    ("x-amz-retry-after", |value, _| {
        millis(value).map_or(Hint::Unreadable("x-amz-retry-after"), wait)
    }),
    (PUSHBACK, |value, _| {
        millis(value).map_or(Hint::Never(PUSHBACK), wait)
    }),
    #[cfg(feature = "grpc")]
    (details::HEADER, |value, _| details::parse(value)),
];

pub(crate) const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Parses the hints in the headers. `now` is the wall-clock time, for dates.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use http::HeaderMap;
/// use steadfast_http::hint::{self, Hint};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT".parse().unwrap());
/// let now = UNIX_EPOCH + Duration::from_secs(50);
/// assert_eq!(hint::parse(&headers, now), Hint::Wait(Duration::from_secs(10)));
/// ```
///
/// A date is compared with the response's own `Date`, if there is one: both are by the
/// server's clock, which may differ from this one.
pub fn parse(headers: &HeaderMap, now: SystemTime) -> Hint {
    let date = headers.get("date").and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| httpdate::parse_http_date(date).ok());
    let now = date.unwrap_or(now);
    HEADERS
        .iter()
        .flat_map(|(name, parse)| {
            let values = headers.get_all(*name).into_iter();
            values.map(move |value| parse(value.as_bytes(), now))
        })
        .fold(Hint::None, Hint::merge)
}

impl Hint {
    /// Merges two hints into one.
    pub(crate) fn merge(self, other: Hint) -> Hint {
        match (self, other) {
            (never @ Hint::Never(_), _) | (_, never @ Hint::Never(_)) => never,
            (Hint::Wait(one), Hint::Wait(other)) => Hint::Wait(one.max(other)),
            (wait @ Hint::Wait(_), _) | (_, wait @ Hint::Wait(_)) => wait,
            (bad @ Hint::Unreadable(_), _) | (_, bad @ Hint::Unreadable(_)) => bad,
            (Hint::None, Hint::None) => Hint::None,
        }
    }
}

/// Parses the value of `Retry-After`: seconds, or a date. `now` is the wall-clock
/// time. Returns none if it is invalid.
pub fn retry_after(value: &[u8], now: SystemTime) -> Option<Duration> {
    seconds(value).or_else(|| date(value, now))
}

fn wait(delay: Duration) -> Hint {
    match delay.is_zero() {
        true => Hint::None,
        false => Hint::Wait(delay.min(MAX_DELAY)),
    }
}

/// Parses the seconds of `Retry-After`: digits and nothing else.
pub fn seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_secs)
}

fn millis(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_millis)
}

/// Parses a number of any length, which may be too large for the type.
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    })
}

/// Parses a date in any of HTTP's three formats. A date in the past is zero away.
fn date(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    let then = httpdate::parse_http_date(text).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests;
