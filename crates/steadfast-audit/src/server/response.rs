//! The responses of a script.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use crate::cases::Later;

/// A response, for both versions of HTTP.
pub(super) struct ScriptedResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pub(super) body: &'static str,
}

impl ScriptedResponse {
    /// Makes a successful response.
    pub(super) fn success() -> Self {
        let json = ("content-type", "application/json".to_owned());
        Self {
            status: 200,
            headers: vec![json],
            body: "{\"audit\":\"ok\"}\n",
        }
    }

    /// Makes a response that fails a request.
    pub(super) fn failure(status: u16, later: Option<Later>) -> Self {
        let hints = later.map(|later| retry_after(later, SystemTime::now()));
        let mut failure = Self::success();
        failure.status = status;
        failure.headers.extend(hints.unwrap_or_default());
        failure.body = "{\"audit\":\"failed on purpose\"}\n";
        failure
    }

    /// Makes a response that leads to another address.
    pub(super) fn redirect(status: u16, target: String) -> Self {
        Self {
            status,
            headers: vec![("location", target)],
            body: "",
        }
    }

    /// Formats the response for HTTP/1.1. The one to a HEAD has no body.
    pub(super) fn to_http1(&self, with_body: bool) -> String {
        let (status, reason) = (self.status, reason(self.status));
        let mut text = format!("HTTP/1.1 {status} {reason}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(text, "{name}: {value}\r\n");
        }
        let _ = write!(text, "content-length: {}\r\n\r\n", self.body.len());
        text + if with_body { self.body } else { "" }
    }

    /// Returns the head of the response for HTTP/2.
    ///
    /// # Errors
    /// Never: the statuses and headers of the table are valid.
    pub(super) fn to_head(&self) -> Result<http::Response<()>, http::Error> {
        let mut head = http::Response::builder().status(self.status);
        for (name, value) in &self.headers {
            head = head.header(*name, value);
        }
        head.body(())
    }
}

fn retry_after(later: Later, now: SystemTime) -> Vec<(&'static str, String)> {
    match later {
        Later::Texts(texts) => {
            let header = |text: &&str| ("retry-after", (*text).to_owned());
            texts.iter().map(header).collect()
        }
        Later::Date { clock_error } => {
            let wrong = Duration::from_secs(clock_error.unsigned_abs());
            let clock = match clock_error < 0 {
                true => now - wrong,
                false => now + wrong,
            };
            // A date has whole seconds and is cut: this one is three to four seconds ahead.
            let then = httpdate::fmt_http_date(clock + Duration::from_secs(4));
            let clock = httpdate::fmt_http_date(clock);
            vec![("date", clock), ("retry-after", then)]
        }
    }
}

const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        307 => "Temporary Redirect",
        408 => "Request Timeout",
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Fault",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_three_to_four_seconds_ahead_of_the_servers_clock() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_900);
        for clock_error in [0, 3600, -500] {
            let headers = retry_after(Later::Date { clock_error }, now);
            let dates: Vec<SystemTime> = headers
                .iter()
                .map(|(_, value)| httpdate::parse_http_date(value).unwrap())
                .collect();
            assert_eq!(
                dates[1].duration_since(dates[0]).unwrap().as_secs(),
                4,
                "{headers:?}"
            );
            let seconds = |time: SystemTime| {
                time.duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap()
                    .as_secs()
            };
            assert_eq!(
                seconds(dates[0]).checked_signed_diff(1000),
                Some(clock_error)
            );
        }
    }
}
