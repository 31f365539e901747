//! When the peer wants to be asked again.
//!
//! A hint is input from the network. Each is parsed to the letter of its
//! definition, and what does not parse is no hint: guessing at a delay that was
//! garbled on its way would be worse than the client's own backoff. A number
//! too large to mean anything is cut at [`LONGEST`], which no deadline allows
//! and the engine refuses to wait for; a delay of nought, or a date that has
//! passed, asks for nothing.
//!
//! | header | value |
//! |---|---|
//! | `Retry-After` | seconds, or a date (RFC 9110, section 10.2.3) |
//! | `retry-after-ms` | milliseconds |
//! | `x-amz-retry-after` | milliseconds |
//! | `grpc-retry-pushback-ms` | milliseconds; anything else means "do not retry" (gRFC A6) |
//! | `grpc-status-details-bin` | `google.rpc.RetryInfo`, with the feature `grpc` |
//!
//! Where there are several, the longest counts: coming back before it would be
//! against somebody's word.

#[cfg(feature = "grpc")]
pub(crate) mod details;

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// Longer hints than this are cut to it.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What the headers of an answer say about when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Nothing, or "now".
    None,
    /// Not before so long; at most [`LONGEST`].
    Wait(Duration),
    /// This header says that there shall be no retry.
    Never(&'static str),
    /// This header is there, but cannot be read, and no other can.
    Unreadable(&'static str),
}

type Parse = fn(&[u8], SystemTime) -> Hint;

const HEADERS: &[(&str, Parse)] = &[
    ("retry-after", |value, now| {
        either(seconds(value), || date(value, now), "Retry-After")
    }),
    ("retry-after-ms", |value, _| {
        either(millis(value), || None, "retry-after-ms")
    }),
    ("x-amz-retry-after", |value, _| {
        either(millis(value), || None, "x-amz-retry-after")
    }),
    (PUSHBACK, |value, _| {
        millis(value).map_or(Hint::Never(PUSHBACK), wait)
    }),
    #[cfg(feature = "grpc")]
    (details::HEADER, |value, _| details::read(value)),
];

pub(crate) const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// What the headers say, given the wall-clock time. Never panics, whatever they
/// are.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use http::HeaderMap;
/// use steadfast_http::hint::{self, Hint};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT".parse().unwrap());
/// let now = UNIX_EPOCH + Duration::from_secs(50);
/// assert_eq!(hint::read(&headers, now), Hint::Wait(Duration::from_secs(10)));
/// ```
pub fn read(headers: &HeaderMap, now: SystemTime) -> Hint {
    HEADERS
        .iter()
        .flat_map(|(name, parse)| {
            let values = headers.get_all(*name).into_iter();
            values.map(move |value| parse(value.as_bytes(), now))
        })
        .fold(Hint::None, Hint::and)
}

impl Hint {
    /// Both hints as one.
    pub(crate) fn and(self, other: Hint) -> Hint {
        match (self, other) {
            (never @ Hint::Never(_), _) | (_, never @ Hint::Never(_)) => never,
            (Hint::Wait(one), Hint::Wait(other)) => Hint::Wait(one.max(other)),
            (wait @ Hint::Wait(_), _) | (_, wait @ Hint::Wait(_)) => wait,
            (bad @ Hint::Unreadable(_), _) | (_, bad @ Hint::Unreadable(_)) => bad,
            (Hint::None, Hint::None) => Hint::None,
        }
    }
}

fn either(
    one: Option<Duration>,
    other: impl FnOnce() -> Option<Duration>,
    header: &'static str,
) -> Hint {
    one.or_else(other).map_or(Hint::Unreadable(header), wait)
}

fn wait(delay: Duration) -> Hint {
    match delay.is_zero() {
        true => Hint::None,
        false => Hint::Wait(delay.min(LONGEST)),
    }
}

/// Reads the seconds of a `Retry-After` header: digits and nothing else.
pub fn seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_secs)
}

fn millis(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_millis)
}

/// Digits and nothing else, however many.
fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        Some(number.saturating_mul(10).saturating_add(digit.into()))
    })
}

/// A date in any of HTTP's three formats; one that has passed is nought away.
fn date(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    let then = httpdate::parse_http_date(text).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests;
