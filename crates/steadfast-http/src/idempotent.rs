//! Which requests may be sent twice.

use http::{HeaderMap, Method};

/// Whether sending the request twice does no more than sending it once.
///
/// That is so for the methods that RFC 9110, section 9.2.2, defines so, and for
/// any request with an `Idempotency-Key`: whoever sends one relies on the server
/// to know the key again.
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
/// An empty key is no key, and of a method that nobody has heard of nothing is
/// assumed.
pub fn is_idempotent(method: &Method, headers: &HeaderMap) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    ) || headers
        .get("idempotency-key")
        .is_some_and(|key| !key.as_bytes().trim_ascii().is_empty())
}

/// What of a request says whether it may be sent twice.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, without a query; of a gRPC call `/package.Service/Method`.
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
    fn the_methods_of_rfc_9110_are_idempotent_and_no_others() {
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
    fn an_empty_idempotency_key_is_none() {
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
