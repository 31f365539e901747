//! Requests and responses as the services see them.
//!
//! A request is read completely before its service sees it, because bodies are small
//! and bounded. The body of a response can be a stream, because it may be long or
//! endless. A stream can break off: a fault uses this to cut a response in the middle.

use std::pin::Pin;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::Stream;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::unread::{BodyInPieces, Unread, UnreadResponses};

/// A request whose body has been read.
#[derive(Debug)]
pub(crate) struct HttpRequest {
    /// The verb.
    pub method: Method,
    /// The path, decoded, without the query.
    pub path: String,
    /// The path and the query, decoded, for scripts to look at.
    pub(super) target: String,
    /// The parameters of the query and, if it is a form, of the body; decoded.
    pub parameters: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl HttpRequest {
    pub(super) fn new(head: Parts, body: Bytes) -> Self {
        let mut parameters = parse_form(head.uri.query().unwrap_or_default());
        let content_type = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        if content_type.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
            parameters.extend(parse_form(&String::from_utf8_lossy(&body)));
        }
        Self {
            method: head.method,
            path: percent_decode(&clean(head.uri.path())),
            target: head
                .uri
                .path_and_query()
                .map_or_else(String::new, |target| percent_decode(target.as_str())),
            parameters,
            headers: head.headers,
            body,
        }
    }

    /// The parts of the path between slashes.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect()
    }

    /// A parameter by its name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The path and, if it has one, the query, decoded.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The body as JSON, or a sentence about the problem.
    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, String> {
        let body: &[u8] = if self.body.is_empty() {
            b"{}"
        } else {
            &self.body
        };
        let invalid = |error| format!("the body is invalid: {error}");
        let value: Value = serde_json::from_slice(body).map_err(invalid)?;
        T::deserialize(&value).map_err(|error| match wrong_field::<T>(&value, &error) {
            Some(name) => format!("the field {name:?} of the body is invalid: {error}"),
            None => invalid(error),
        })
    }
}

/// Returns the member of a body that an error is about, unless the error names it: without it, there
/// is another error or none.
fn wrong_field<T: serde::de::DeserializeOwned>(
    body: &Value,
    error: &serde_json::Error,
) -> Option<String> {
    let text = error.to_string();
    if text.contains("field `") {
        return None;
    }
    let members = body.as_object()?;
    let wrong = members.keys().find(|name| {
        let mut rest = members.clone();
        rest.remove(*name);
        let other = T::deserialize(Value::Object(rest)).err();
        other.is_none_or(|other| other.to_string() != text)
    });
    wrong.cloned()
}

/// The name and password of basic authentication.
pub(super) fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':')
        .map(|(name, password)| (name.to_owned(), password.to_owned()))
}

/// The token of bearer authentication.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    headers
        .get(AUTHORIZATION)?
        .to_str()
        .ok()?
        .strip_prefix("Bearer ")
}

/// The connection is to end in the middle of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the answer was broken off on purpose")]
pub(crate) struct BrokenOff;

/// The pieces of a long body, in order.
pub(super) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, BrokenOff>> + Send>>;

/// The body of a response.
pub(crate) enum ResponseBody {
    /// All of it.
    Whole(Bytes),
    /// Piece by piece. After a [`BrokenOff`] the connection ends without the rest.
    Stream(Pieces),
}

impl ResponseBody {
    /// The body as pieces, whatever it was.
    pub(super) fn into_pieces(self) -> Pieces {
        match self {
            Self::Whole(bytes) => Box::pin(futures_util::stream::iter([Ok(bytes)])),
            Self::Stream(pieces) => pieces,
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(bytes) => write!(formatter, "{} bytes", bytes.len()),
            Self::Stream(_) => formatter.write_str("a stream"),
        }
    }
}

/// A response.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: ResponseBody,
    /// How many bytes the source of a streamed body holds, about.
    pub(super) held: usize,
    /// Set once the response is counted.
    pub(super) unread: Option<Unread>,
}

impl HttpResponse {
    /// JSON.
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Plain text.
    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", body.to_owned())
    }

    /// The response to a feature that real servers have.
    pub(crate) fn unsupported(feature: &str) -> Self {
        Self::error(501, format!("not supported by this cluster: {feature}"))
    }

    /// A sentence about what was wrong, in JSON.
    pub(crate) fn error(status: u16, sentence: impl std::fmt::Display) -> Self {
        Self::json(status, &json!({"error": sentence.to_string()}))
    }

    /// Any content.
    pub(crate) fn new(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
        Self {
            status,
            headers,
            body: ResponseBody::Whole(body.into()),
            held: 0,
            unread: None,
        }
    }

    /// Says how many bytes the source of a streamed body holds until the client has read it.
    #[must_use]
    pub(super) fn holding(self, held: usize) -> Self {
        Self { held, ..self }
    }

    /// Counts the response among those that clients have not read, if it is not yet counted. The
    /// token is cancelled if it must make room for others.
    #[must_use]
    pub(super) fn counted(
        mut self,
        all: &Arc<UnreadResponses>,
        displaced: &CancellationToken,
    ) -> Self {
        if let ResponseBody::Whole(bytes) = &self.body {
            self.held = bytes.len();
        }
        let held = self.held;
        self.unread
            .get_or_insert_with(|| Unread::enter(all, held, displaced.clone()));
        self
    }

    /// JSON that comes in pieces.
    pub(crate) fn stream(status: u16, pieces: Pieces) -> Self {
        Self {
            body: ResponseBody::Stream(pieces),
            ..Self::new(status, "application/json", Bytes::new())
        }
    }

    /// Adds a header.
    #[must_use]
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The response for the transport, counted as by [`HttpResponse::counted`].
    pub(super) fn into_hyper(
        self,
        all: &Arc<UnreadResponses>,
        displaced: &CancellationToken,
    ) -> hyper::Response<BodyInPieces> {
        let counted = self.counted(all, displaced);
        let (status, headers) = (counted.status, counted.headers);
        let unread = counted
            .unread
            .unwrap_or_else(|| unreachable!("it has just been counted"));
        let body = BodyInPieces::new(counted.body, counted.held, unread);
        let mut response = hyper::Response::new(body);
        // A status below 200 is not an answer, and one that a test made up may be none at all.
        *response.status_mut() = StatusCode::from_u16(status)
            .ok()
            .filter(|status| !status.is_informational())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
            .headers_mut()
            .extend(headers.into_iter().map(|(name, value)| (Some(name), value)));
        response
    }
}

fn parse_form(text: &str) -> Vec<(String, String)> {
    text.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode = |text: &str| percent_decode(&text.replace('+', " "));
            (decode(key), decode(value))
        })
        .collect()
}

/// The path with one slash where it has several. Real services redirect to it.
fn clean(path: &str) -> String {
    let mut cleaned = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !cleaned.ends_with('/') {
            cleaned.push(letter);
        }
    }
    cleaned
}

fn percent_decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_decoded() {
        assert_eq!(
            parse_form("a=1&b=x%20y+z&c&%C3%BC=%26"),
            [("a", "1"), ("b", "x y z"), ("c", ""), ("ü", "&")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        );
        assert!(parse_form("").is_empty());
    }

    #[test]
    fn credentials_are_read_from_the_header() {
        let request = |header: &'static str| {
            let request = hyper::Request::builder()
                .header(AUTHORIZATION, header)
                .body(())
                .unwrap();
            HttpRequest::new(request.into_parts().0, Bytes::new())
        };
        let basic = basic_credentials(&request("Basic YXBwOnNlOmNyZXQ=").headers);
        assert_eq!(basic, Some(("app".into(), "se:cret".into())));
        assert_eq!(basic_credentials(&request("Basic ???").headers), None);
        assert_eq!(bearer_token(&request("Bearer tok").headers), Some("tok"));
    }
}
