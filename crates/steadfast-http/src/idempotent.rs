//! Idempotency of requests, by method and `Idempotency-Key`.

use http::{HeaderMap, Method};

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
        .get("idempotency-key")
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

#[cfg(any(feature = "tower", feature = "reqwest"))]
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
