//! Decides who may use the control endpoint.
//!
//! Whoever reaches the endpoint can make administrators and stop nodes. A web page in the
//! tester's browser reaches loopback too, so a request needs a token that no page knows.
//! Browsers also give themselves away by `Origin`, and pages that point a name of
//! their own at loopback by `Host`.

use std::net::IpAddr;

use hyper::header::{CONTENT_TYPE, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use subtle::ConstantTimeEq;

use super::super::message::{basic_credentials, bearer_token};
use super::super::{HttpRequest, HttpResponse};

/// The rules of an endpoint.
#[derive(Debug, Clone)]
pub(super) struct Guard {
    token: String,
    /// The name that the cluster goes by, besides its addresses and `localhost`.
    host: Option<String>,
}

impl Guard {
    pub(super) fn new(token: &str, host: Option<&str>) -> Self {
        Self {
            token: token.to_owned(),
            host: host.map(str::to_owned),
        }
    }

    /// Refuses a request that must not be answered.
    pub(super) fn refuse(&self, request: &HttpRequest) -> Option<HttpResponse> {
        if request.headers.contains_key(ORIGIN) {
            let sentence = "the control endpoint is not for web pages: leave the header Origin out";
            return Some(HttpResponse::error(403, sentence));
        }
        let host = request
            .headers
            .get(HOST)
            .and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.knows(host)) {
            let sentence = "the header Host must be the printed address, or localhost";
            return Some(HttpResponse::error(403, sentence));
        }
        let basic = basic_credentials(&request.headers).map(|(name, _)| name);
        let token = bearer_token(&request.headers).map(str::to_owned).or(basic);
        let is_right = |token: String| bool::from(token.as_bytes().ct_eq(self.token.as_bytes()));
        if !token.is_some_and(is_right) {
            let sentence = "send the token that `steadfast cluster` printed: \
                            Authorization: Bearer TOKEN";
            let wanted = HeaderValue::from_static("Bearer");
            return Some(HttpResponse::error(401, sentence).header(WWW_AUTHENTICATE, wanted));
        }
        let content_type = request.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|kind| kind.to_str().ok());
        let is_json = content_type.is_some_and(|kind| kind.starts_with("application/json"));
        if !request.body.is_empty() && !is_json {
            let sentence = "the body must be JSON: Content-Type: application/json";
            return Some(HttpResponse::error(415, sentence));
        }
        None
    }

    /// Returns whether a `Host` is an address, or a name of this cluster.
    fn knows(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']');
        address.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self
                .host
                .as_deref()
                .is_some_and(|own| own.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_own_names_are_hosts() {
        let guard = Guard::new("t", Some("db.test"));
        for host in [
            "127.0.0.1:80",
            "localhost",
            "[::1]:9",
            "DB.test:1",
            "LOCALHOST:2",
        ] {
            assert!(guard.knows(host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "",
            "localhost.evil:1",
        ] {
            assert!(!guard.knows(host), "{host}");
        }
    }
}
