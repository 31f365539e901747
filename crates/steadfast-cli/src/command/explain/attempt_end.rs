//! The ends of an attempt: not sent, in flight, or a response.

use clap::Args;
use serde_json::json;
use steadfast::Reason;
use steadfast_couchbase::explain::{known_codes, known_statuses};
use steadfast_couchbase::reason::{self, SOCKET_NOT_AVAILABLE};
use steadfast_wire::Status;
use steadfast_wire::error_map::ErrorMap;

use super::operation::{ExplainedOperation, Protocol};
use crate::exit::{refuse, usage};
use steadfast_cluster::suggest;

/// The flags that describe how the attempt ended.
#[derive(Args)]
#[group(id = "attempt_end", multiple = true)]
pub(super) struct AttemptEndArgs {
    /// kv: the response had this status, by name (ETMPFAIL) or number (0x86)
    #[arg(long, conflicts_with_all = ["code", "http", "not_sent", "in_flight"])]
    status: Option<String>,
    /// query, analytics: the response had this error code
    #[arg(long, value_parser = crate::number::whole, conflicts_with_all = ["not_sent", "in_flight"])]
    code: Option<u64>,
    /// Error message beside --code; a few codes depend on it
    #[arg(long, requires = "code")]
    message: Option<String>,
    /// The response had this HTTP status
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599), conflicts_with_all = ["not_sent", "in_flight"])]
    http: Option<u16>,
    /// Body of the response beside --http; a few statuses depend on it
    #[arg(long, requires = "http", conflicts_with = "code")]
    body: Option<String>,
    /// The request was not sent, for this reason
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "SOCKET_NOT_AVAILABLE", conflicts_with = "in_flight")]
    not_sent: Option<String>,
    /// The connection closed after the request was sent and before the response
    #[arg(long)]
    in_flight: bool,
}

/// How an attempt ended.
pub(super) enum AttemptEnd {
    NotSent(&'static Reason),
    InFlight,
    Status(Status),
    Http {
        status: u16,
        body: String,
        shown: String,
    },
}

impl AttemptEndArgs {
    pub(super) fn parse(&self, operation: &ExplainedOperation) -> anyhow::Result<AttemptEnd> {
        if let Some(name) = &self.not_sent {
            return Ok(AttemptEnd::NotSent(find_reason(name)?));
        }
        if self.in_flight {
            return Ok(AttemptEnd::InFlight);
        }
        match (operation.protocol, &self.status, self.code, self.http) {
            (Protocol::Kv(_), Some(status), ..) => Ok(AttemptEnd::Status(find_status(status)?)),
            (Protocol::Kv(_), None, None, None) => {
                refuse!(
                    "say how the attempt ended: give --status, --not-sent or --in-flight, or --table for all"
                )
            }
            (Protocol::Kv(_), ..) => {
                refuse!("--code and --http are for HTTP services: give --status for kv")
            }
            (Protocol::Http(_), Some(_), ..) => {
                refuse!("--status is for kv: give --http or --code")
            }
            (Protocol::Http(_), None, Some(code), http) => {
                let message = self.message.as_deref().unwrap_or_default();
                Ok(AttemptEnd::code(http.unwrap_or(200), code, message))
            }
            (Protocol::Http(_), None, None, Some(status)) => Ok(AttemptEnd::http(
                status,
                self.body.as_deref().unwrap_or_default(),
            )),
            (Protocol::Http(_), None, None, None) => {
                refuse!(
                    "say how the attempt ended: give --code, --http, --not-sent or --in-flight, \
                     or --table for all"
                )
            }
        }
    }
}

impl AttemptEnd {
    fn code(status: u16, code: u64, message: &str) -> Self {
        let body = json!({"errors": [{"code": code, "msg": message}]}).to_string();
        let shown = match message {
            "" => format!("answered code {code}"),
            message => format!("answered code {code}, {message:?}"),
        };
        Self::Http {
            status,
            body,
            shown,
        }
    }

    fn http(status: u16, body: &str) -> Self {
        let shown = match body {
            "" => format!("answered HTTP {status}"),
            body => format!("answered HTTP {status}, {body:?}"),
        };
        let body = body.to_owned();
        Self::Http {
            status,
            body,
            shown,
        }
    }

    /// Describes the end in words that follow the operation's name.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::NotSent(_) => "was not sent".to_owned(),
            Self::InFlight => "got no answer: the connection closed".to_owned(),
            Self::Status(status) => format!("answered {status}"),
            Self::Http { shown, .. } => shown.clone(),
        }
    }
}

/// Lists all ends of an operation's attempt: the stages before a response, and the
/// responses that any table contains.
pub(super) fn all_ends(operation: &ExplainedOperation, map: &ErrorMap) -> Vec<AttemptEnd> {
    let mut ends: Vec<AttemptEnd> = not_sent_reasons(operation)
        .map(AttemptEnd::NotSent)
        .collect();
    ends.push(AttemptEnd::InFlight);
    match operation.protocol {
        Protocol::Kv(_) => {
            let known = Status::KNOWN.iter().map(|status| status.code());
            let mut codes: Vec<u16> = known.chain(map.errors.keys().copied()).collect();
            codes.sort_unstable();
            codes.dedup();
            let statuses = codes.into_iter().map(Status::from_code);
            ends.extend(
                statuses
                    .filter(|status| !status.is_success())
                    .map(AttemptEnd::Status),
            );
        }
        Protocol::Http(service) => {
            for (code, message) in known_codes(service) {
                ends.push(AttemptEnd::code(200, code, message));
            }
            for (status, body) in known_statuses(service) {
                ends.push(AttemptEnd::http(status, body));
            }
        }
    }
    ends
}

/// Lists the reasons for which an operation is not sent.
fn not_sent_reasons(
    operation: &ExplainedOperation,
) -> impl Iterator<Item = &'static Reason> + use<> {
    let kv = matches!(operation.protocol, Protocol::Kv(_));
    let always = [
        &SOCKET_NOT_AVAILABLE,
        &reason::NODE_NOT_AVAILABLE,
        &reason::SERVICE_NOT_AVAILABLE,
        &reason::CIRCUIT_BREAKER_OPEN,
        &reason::AUTHENTICATION_ERROR,
        &reason::TLS_ERROR,
    ];
    let of_documents = [
        &reason::BUCKET_ACCESS_ERROR,
        &reason::SCOPE_NOT_FOUND,
        &reason::COLLECTION_NOT_FOUND,
    ];
    let of_documents = of_documents.into_iter().filter(move |_| kv);
    always.into_iter().chain(of_documents)
}

fn find_reason(name: &str) -> anyhow::Result<&'static Reason> {
    let known = reason::ALL
        .into_iter()
        .find(|reason| reason.name().eq_ignore_ascii_case(&name.replace('-', "_")));
    let names = reason::ALL.iter().map(|reason| reason.name());
    known.ok_or_else(|| usage(suggest::unknown(name, "a reason", names)))
}

fn find_status(text: &str) -> anyhow::Result<Status> {
    let named = Status::KNOWN.iter().find(|status| {
        status
            .name()
            .is_some_and(|name| name.eq_ignore_ascii_case(text))
    });
    if let Some(status) = named {
        return Ok(*status);
    }
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let code = match hex {
        Some(hex) => u16::from_str_radix(hex, 16),
        None => text.parse(),
    };
    let code = code.map_err(|_| {
        let names: Vec<_> = Status::KNOWN
            .iter()
            .filter_map(|known| known.name())
            .collect();
        usage(match suggest::nearest(text, &names) {
            Some(name) => format!("{text:?} is not a status; did you mean {name}?"),
            None => format!(
                "{text:?} is not a status: give a name such as ETMPFAIL, or a number such as 0x86"
            ),
        })
    })?;
    Ok(Status::from_code(code))
}
