//! How an attempt can end.

use clap::Args;
use serde_json::json;
use steadfast::Reason;
use steadfast_couchbase::reason::{self, SOCKET_NOT_AVAILABLE};
use steadfast_wire::Status;
use steadfast_wire::error_map::ErrorMap;

use super::subject::{Kind, Subject};
use crate::exit::{refuse, usage};

/// How the attempt ended, of which there is one.
#[derive(Args)]
#[group(id = "ending", multiple = true)]
pub(super) struct EndingArguments {
    /// kv: answered with this status, by name (ETMPFAIL) or number (0x86)
    #[arg(long, conflicts_with_all = ["code", "http", "not_sent", "in_flight"])]
    status: Option<String>,
    /// query, analytics: answered with this error code
    #[arg(long, value_parser = crate::number::whole, conflicts_with_all = ["not_sent", "in_flight"])]
    code: Option<u64>,
    /// The message beside the code, where it matters
    #[arg(long, requires = "code")]
    message: Option<String>,
    /// Answered with this HTTP status
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=599), conflicts_with_all = ["not_sent", "in_flight"])]
    http: Option<u16>,
    /// The body of that answer, where it matters
    #[arg(long, requires = "http", conflicts_with = "code")]
    body: Option<String>,
    /// Nothing was sent, for this reason
    #[arg(long, value_name = "REASON", num_args = 0..=1, default_missing_value = "SOCKET_NOT_AVAILABLE", conflicts_with = "in_flight")]
    not_sent: Option<String>,
    /// The connection closed after bytes had left, and before an answer
    #[arg(long)]
    in_flight: bool,
}

/// How an attempt ended.
pub(super) enum Ending {
    NotSent(&'static Reason),
    InFlight,
    Status(Status),
    Http {
        status: u16,
        body: String,
        shown: String,
    },
}

impl EndingArguments {
    pub(super) fn read(&self, subject: &Subject) -> anyhow::Result<Ending> {
        if let Some(name) = &self.not_sent {
            return Ok(Ending::NotSent(find_reason(name)?));
        }
        if self.in_flight {
            return Ok(Ending::InFlight);
        }
        match (subject.kind, &self.status, self.code, self.http) {
            (Kind::Kv(_), Some(status), ..) => Ok(Ending::Status(find_status(status)?)),
            (Kind::Kv(_), None, None, None) => {
                refuse!(
                    "how did the attempt end? --status, --not-sent or --in-flight; or --table for all"
                )
            }
            (Kind::Kv(_), ..) => refuse!("kv answers with a --status, not over HTTP"),
            (Kind::Http(_), Some(_), ..) => refuse!("--status is for kv; give --http or --code"),
            (Kind::Http(_), None, Some(code), http) => {
                let message = self.message.as_deref().unwrap_or_default();
                Ok(Ending::code(http.unwrap_or(200), code, message))
            }
            (Kind::Http(_), None, None, Some(status)) => Ok(Ending::http(
                status,
                self.body.as_deref().unwrap_or_default(),
            )),
            (Kind::Http(_), None, None, None) => {
                refuse!(
                    "how did the attempt end? --code, --http, --not-sent or --in-flight; \
                     or --table for all"
                )
            }
        }
    }
}

impl Ending {
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

    /// In words, to stand behind the operation's name.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::NotSent(_) => "was not sent".to_owned(),
            Self::InFlight => "got no answer: the connection closed".to_owned(),
            Self::Status(status) => format!("answered {status}"),
            Self::Http { shown, .. } => shown.clone(),
        }
    }
}

/// Everything that can happen to an operation: the stages before an answer, and the
/// answers that any table knows.
pub(super) fn alternatives(subject: &Subject, map: &ErrorMap) -> Vec<Ending> {
    let mut endings: Vec<Ending> = before_sending(subject).map(Ending::NotSent).collect();
    endings.push(Ending::InFlight);
    match subject.kind {
        Kind::Kv(_) => {
            let known = Status::KNOWN.iter().map(|status| status.code());
            let mut codes: Vec<u16> = known.chain(map.errors.keys().copied()).collect();
            codes.sort_unstable();
            codes.dedup();
            let answers = codes.into_iter().map(Status::from_code);
            endings.extend(
                answers
                    .filter(|status| !status.is_success())
                    .map(Ending::Status),
            );
        }
        Kind::Http(service) => {
            for (code, message) in service.known_codes() {
                endings.push(Ending::code(200, *code, message));
            }
            for (status, body) in service.known_statuses() {
                endings.push(Ending::http(*status, body));
            }
        }
    }
    endings
}

/// The reasons for which an operation is not sent.
fn before_sending(subject: &Subject) -> impl Iterator<Item = &'static Reason> + use<> {
    let kv = matches!(subject.kind, Kind::Kv(_));
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
    known.ok_or_else(|| {
        let names: Vec<_> = reason::ALL.iter().map(|reason| reason.name()).collect();
        usage(format_args!(
            "{name:?} is no reason; there are {}",
            names.join(", ")
        ))
    })
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
        usage(format_args!(
            "{text:?} is no status: give a name such as ETMPFAIL, or a number such as 0x86"
        ))
    })?;
    Ok(Status::from_code(code))
}
