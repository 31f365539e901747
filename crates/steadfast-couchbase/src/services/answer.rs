//! What a service's answer means.

use steadfast::Reason;

use super::rows::Members;
use crate::error::{ErrorKind, HttpContext};

/// As much of a service's own words as an error repeats.
const MAX_WORDS: usize = 512;

/// An answer, whole but for its rows.
pub(crate) struct Judged<'a> {
    /// The HTTP status.
    pub(crate) status: u16,
    /// What it says around rows. Empty if it is no JSON object.
    pub(crate) members: &'a Members,
    /// All of it, if it was read as a whole because its status is no success.
    pub(crate) text: Option<&'a str>,
    /// Whether doing the operation twice does no more than doing it once.
    pub(crate) idempotent: bool,
}

/// An answer that is an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    /// The service's own number for it.
    pub(crate) code: Option<u64>,
    /// What the service says about it.
    pub(crate) message: Option<String>,
    /// What it is for the user.
    pub(crate) kind: ErrorKind,
    /// The reason for a retry, if the answer is in RFC 0049's "Response Code
    /// Retry List". What is not there is not retried.
    pub(crate) retry: Option<&'static Reason>,
}

impl Judged<'_> {
    /// Whether the HTTP status is one of success.
    pub(crate) fn is_success(&self) -> bool {
        is_success(self.status)
    }

    /// The answer as text; nothing if it was not read as a whole.
    pub(crate) fn text(&self) -> &str {
        self.text.unwrap_or_default()
    }

    /// An error that says no more than its status, in the service's words.
    pub(crate) fn by_status(&self) -> Refused {
        let kind = match self.status {
            401 | 403 => ErrorKind::AuthenticationFailure,
            429 => limit(self.text()).unwrap_or(ErrorKind::TemporaryFailure),
            500..=599 => ErrorKind::InternalServerFailure,
            _ => ErrorKind::Couchbase,
        };
        Refused {
            code: None,
            message: words(self.text()),
            kind,
            retry: None,
        }
    }
}

impl Refused {
    /// With this reason to try again.
    pub(crate) fn retried(mut self, reason: &'static Reason) -> Self {
        self.retry = Some(reason);
        self
    }

    /// Puts what the service said where the error will show it.
    pub(crate) fn tell(&self, context: &mut HttpContext) {
        context.code = self.code;
        context.message.clone_from(&self.message);
    }
}

/// Whether an HTTP status is one of success.
pub(crate) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Which limit a text names (RFC 0058, "RateLimitingFailure"; what counts things
/// that are kept, instead of requests or bytes over time, is a quota).
pub(crate) fn limit(text: &str) -> Option<ErrorKind> {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["num_fts_indexes", "Maximum number of collections"]) {
        return Some(ErrorKind::QuotaLimited);
    }
    let rates = [
        "num_concurrent_requests",
        "num_queries_per_min",
        "ingress",
        "egress",
    ];
    has(&rates).then_some(ErrorKind::RateLimited)
}

/// The service's words, on one line and not too many.
pub(crate) fn words(text: &str) -> Option<String> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_WORDS {
            let end = line.floor_char_boundary(MAX_WORDS);
            line.truncate(end);
            line.push('…');
            break;
        }
    }
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_on_one_line_and_bounded() {
        assert_eq!(words(" a\r\n b "), Some("a b".to_owned()));
        assert_eq!(words("\n"), None);
        let long = words(&"ü".repeat(1000)).unwrap();
        assert!(long.len() <= MAX_WORDS + 3 && long.ends_with('…'));
    }

    #[test]
    fn limits_are_told_by_their_names() {
        for (text, kind) in [
            (
                "num_concurrent_requests, value >= limit",
                Some(ErrorKind::RateLimited),
            ),
            (
                "num_queries_per_min, value >= limit",
                Some(ErrorKind::RateLimited),
            ),
            ("ingress_mib_per_min >= limit", Some(ErrorKind::RateLimited)),
            ("Limit(s) exceeded [egress]", Some(ErrorKind::RateLimited)),
            (
                "num_fts_indexes (active + pending) >= limit",
                Some(ErrorKind::QuotaLimited),
            ),
            (
                "Maximum number of collections has been reached for scope \"s\"",
                Some(ErrorKind::QuotaLimited),
            ),
            ("too many requests", None),
        ] {
            assert_eq!(limit(text), kind, "{text}");
        }
    }
}
