//! Idempotency of requests, by method and `Idempotency-Key`.

#[cfg(any(feature = "tower", feature = "reqwest-any"))]
use std::hash::{BuildHasher, Hasher, RandomState};

use http::{HeaderMap, HeaderName, Method};

pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Returns a new key: a random UUID, as a string of a structured header.
#[cfg(any(feature = "tower", feature = "reqwest-any"))]
pub(crate) fn generate_key() -> http::HeaderValue {
    // Each state has keys of its own, from the system's random numbers.
    let random = || u128::from(RandomState::new().build_hasher().finish());
    let bits = (random() << 64) | random();
    // Version 4, variant 1 (RFC 9562, section 5.4).
    let bits = (bits & !(0xF << 76) & !(0b11 << 62)) | (4 << 76) | (0b10 << 62);
    let hex = format!("{bits:032x}");
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    let key = format!("\"{}\"", parts.join("-"));
    http::HeaderValue::try_from(key).expect("hexadecimal digits are valid in a header")
}

/// Returns whether sending a request twice has the same effect as sending it once.
///
/// That is true for the idempotent methods of RFC 9110, section 9.2.2, and for any
/// request with an `Idempotency-Key`, by which the server recognizes it.
///
/// ```
/// use http::{HeaderMap, Method};
/// use steadfast_http::is_idempotent;
///
/// let mut headers = HeaderMap::new();
/// assert!(is_idempotent(&Method::PUT, &headers));
/// assert!(!is_idempotent(&Method::POST, &headers));
/// headers.insert("idempotency-key", "7d3c".parse().unwrap());
/// assert!(is_idempotent(&Method::POST, &headers));
/// ```
///
/// An empty key does not count, and unknown methods are not idempotent.
pub fn is_idempotent(method: &Method, headers: &HeaderMap) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    ) || headers
        .get(&IDEMPOTENCY_KEY)
        .is_some_and(|key| !key.as_bytes().trim_ascii().is_empty())
}

/// The parts of a request that decide whether it may be sent twice.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path without the query; for a gRPC call `/package.Service/Method`.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
}

#[cfg(any(feature = "tower", feature = "reqwest-any"))]
impl<'a> RequestHead<'a> {
    pub(crate) const fn new(method: &'a Method, path: &'a str, headers: &'a HeaderMap) -> Self {
        Self {
            method,
            path,
            headers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_methods_of_rfc_9110_are_idempotent() {
        let headers = HeaderMap::new();
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(
                is_idempotent(&method.parse().unwrap(), &headers),
                "{method}"
            );
        }
        for method in ["POST", "PATCH", "CONNECT", "PURGE", "get"] {
            assert!(
                !is_idempotent(&method.parse().unwrap(), &headers),
                "{method}"
            );
        }
    }

    #[cfg(any(feature = "tower", feature = "reqwest-any"))]
    #[test]
    fn a_generated_key_is_a_new_uuid() {
        let keys: std::collections::HashSet<_> = (0..1000).map(|_| generate_key()).collect();
        assert_eq!(keys.len(), 1000);
        // The bits that are set in some key, and in all keys.
        let (mut some, mut all) = (0, u128::MAX);
        for key in keys {
            let key = key.to_str().unwrap().trim_matches('"').to_owned();
            let lengths: Vec<_> = key.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{key}");
            assert_eq!(&key[14..15], "4", "{key}");
            assert!(matches!(&key[19..20], "8" | "9" | "a" | "b"), "{key}");
            let bits = u128::from_str_radix(&key.replace('-', ""), 16).unwrap();
            (some, all) = (some | bits, all & bits);
        }
        // All others are random.
        assert_eq!(all, (4 << 76) | (0b10 << 62));
        assert_eq!(some, !(0b1011 << 76) & !(0b01 << 62));
    }

    #[test]
    fn an_empty_idempotency_key_does_not_count() {
        for (key, idempotent) in [("", false), ("  ", false), ("a", true)] {
            let mut headers = HeaderMap::new();
            headers.insert("Idempotency-Key", key.parse().unwrap());
            assert_eq!(
                is_idempotent(&Method::POST, &headers),
                idempotent,
                "{key:?}"
            );
        }
    }
}
