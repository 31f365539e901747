//! The responses of a script.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use crate::cases::Later;

/// The body of a successful response.
const BODY: &str = "{\"audit\":\"ok\"}\n";

/// Makes a successful response.
pub(super) fn success() -> String {
    response(200, "", BODY)
}

/// Makes a response that fails a request.
pub(super) fn failure(status: u16, later: Option<Later>) -> String {
    let headers = later.map_or_else(String::new, |later| retry_after(later, SystemTime::now()));
    response(status, &headers, "{\"audit\":\"failed on purpose\"}\n")
}

/// Makes a response that leads to another address.
pub(super) fn redirect(status: u16, target: &str) -> String {
    response(status, &format!("Location: {target}\r\n"), "")
}

fn response(status: u16, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}",
        reason = reason(status),
        length = body.len(),
    )
}

fn retry_after(later: Later, now: SystemTime) -> String {
    let mut headers = String::new();
    match later {
        Later::Texts(texts) => {
            for text in texts {
                let _ = write!(headers, "Retry-After: {text}\r\n");
            }
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
            let _ = write!(headers, "Date: {clock}\r\nRetry-After: {then}\r\n");
        }
    }
    headers
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
                .lines()
                .filter_map(|line| httpdate::parse_http_date(line.split_once(": ")?.1).ok())
                .collect();
            assert_eq!(
                dates[1].duration_since(dates[0]).unwrap().as_secs(),
                4,
                "{headers}"
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
