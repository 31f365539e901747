//! The table of faults.
//!
//! What a status says about a request that is not idempotent is what `docs/http.md` says: after
//! 425 and 429 it was not applied; after a 5xx it may have been, because proxies send these too.

use std::time::Duration;

use super::{Action, Applied, Later, RetryValue, ServerFault, Times};
use Applied::{Disputed, No, Perhaps};
use RetryValue::{Helps, Useless};
use Times::{Always, Fleet, Once, Thrice};

const EACH: &[Times] = &[Once, Thrice, Always];

/// Every fault, in groups.
pub const FAULTS: [&[ServerFault]; 5] = [TRANSPORT, STREAMS, STATUSES, RETRY_AFTER, RESPONSES];

const fn fault(
    id: &'static str,
    text: &'static str,
    action: Action,
    applied: Applied,
    retry: RetryValue,
    times: &'static [Times],
) -> ServerFault {
    ServerFault {
        id,
        text,
        action,
        applied,
        retry,
        least_wait: None,
        times,
    }
}

#[rustfmt::skip]
const TRANSPORT: &[ServerFault] = &[
    fault("refused", "connection refused, then accepted", Action::Refuse, No, Helps, &[Once]),
    fault("closed-unread", "connection closed, request unread", Action::CloseUnread, Perhaps, Helps, EACH),
    fault("closed", "request read, connection closed", Action::CloseUnanswered, Perhaps, Helps, EACH),
    fault("reset", "request read, connection reset", Action::Reset, Perhaps, Helps, EACH),
    fault("cut", "connection closed in mid-response", Action::CutResponse, Perhaps, Helps, EACH),
    fault("silent", "request read, no response", Action::StaySilent, Perhaps, Helps, EACH),
];

#[rustfmt::skip]
const STREAMS: &[ServerFault] = &[
    fault("handshake", "connection closed in the TLS handshake", Action::CutHandshake, No, Helps, EACH),
    // RFC 9113, section 8.7: what is refused, or beyond the last stream of a GOAWAY, was not processed.
    fault("refused-stream", "stream refused (REFUSED_STREAM)", Action::RefuseStream, No, Helps, EACH),
    fault("goaway", "GOAWAY that excludes the request", Action::GoAway, No, Helps, EACH),
    fault("goaway-late", "GOAWAY that includes the request", Action::GoAwayLate, Perhaps, Helps, EACH),
    fault("reset-stream", "request read, stream reset", Action::ResetStream, Perhaps, Helps, EACH),
];

const fn status(
    id: &'static str,
    text: &'static str,
    code: u16,
    applied: Applied,
    retry: RetryValue,
) -> ServerFault {
    fault(id, text, Action::Respond(code), applied, retry, EACH)
}

#[rustfmt::skip]
const STATUSES: &[ServerFault] = &[
    // The server may act on a part of the request; RFC 9110 allows a retry (section 15.5.9).
    status("408", "408 Request Timeout", 408, Disputed, Helps),
    status("425", "425 Too Early", 425, No, Helps),
    status("429", "429 Too Many Requests", 429, No, Helps),
    status("500", "500 Internal Server Error", 500, Perhaps, Helps),
    status("501", "501 Not Implemented", 501, Disputed, Useless),
    status("502", "502 Bad Gateway", 502, Perhaps, Helps),
    ServerFault { times: &[Once, Thrice, Always, Fleet], ..status("503", "503 Service Unavailable", 503, Perhaps, Helps) },
    status("504", "504 Gateway Timeout", 504, Perhaps, Helps),
    status("520", "520, a status without a definition", 520, Perhaps, Helps),
];

const fn later(
    id: &'static str,
    text: &'static str,
    code: u16,
    later: Later,
    least_wait: u64,
) -> ServerFault {
    let applied = if code == 429 { No } else { Perhaps };
    let action = Action::RespondLater(code, later);
    ServerFault {
        least_wait: Some(Duration::from_secs(least_wait)),
        ..fault(id, text, action, applied, Helps, &[Once])
    }
}

const TWO: Later = Later::Texts(&["2"]);

#[rustfmt::skip]
const RETRY_AFTER: &[ServerFault] = &[
    later("429-after-2", "429 with Retry-After: 2", 429, TWO, 2),
    later("503-after-2", "503 with Retry-After: 2", 503, TWO, 2),
    ServerFault { times: &[Always], ..later("429-after-1", "429 with Retry-After: 1", 429, Later::Texts(&["1"]), 1) },
    // Three to four seconds; clients that round the present up or down wait for two at least.
    later("503-after-date", "503 with Retry-After: date, in 3 s", 503, Later::Date { clock_error: 0 }, 2),
    later("503-clock-ahead", "503 with a date, server's clock 1 h ahead", 503, Later::Date { clock_error: 3600 }, 2),
    // By its own clock, a client sees a date in the past.
    later("503-clock-behind", "503 with a date, server's clock 1 h behind", 503, Later::Date { clock_error: -3600 }, 0),
    later("503-after-0", "503 with Retry-After: 0", 503, Later::Texts(&["0"]), 0),
    later("503-after-negative", "503 with Retry-After: -5", 503, Later::Texts(&["-5"]), 0),
    ServerFault { retry: Useless, ..later("503-after-day", "503 with Retry-After: 86400", 503, Later::Texts(&["86400"]), 86_400) },
    later("503-after-twice", "503 with Retry-After: 1 and 3", 503, Later::Texts(&["1", "3"]), 1),
];

#[rustfmt::skip]
const RESPONSES: &[ServerFault] = &[
    // 303 says that the request was carried out; 307 that it was not.
    fault("303", "303 to a server that refuses", Action::Redirect(303), Perhaps, Useless, &[Always]),
    fault("307", "307 to a server that refuses", Action::Redirect(307), No, Useless, &[Always]),
    fault("303-here", "303 to another path", Action::RedirectHere(303), Perhaps, Useless, &[Once]),
    fault("307-closed", "307 to a path that closes", Action::RedirectThenClose(307), Perhaps, Useless, &[Always]),
    fault("early", "503 during the upload", Action::RespondEarly(503), Perhaps, Helps, &[Once]),
    fault("drip", "response of one byte each 250 ms", Action::Drip, Perhaps, Useless, &[Always]),
];
