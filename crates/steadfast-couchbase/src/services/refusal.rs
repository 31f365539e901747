//! What answers mean, asked without an operation.

use bytes::Bytes;
use steadfast_wire::config::Service;

use super::answer::{Judged, Refused, is_success};
use super::rows::{Limits, Splitter};
use super::{analytics, query, search, views};

/// What an answer of a service means, if it is no success: what operations are
/// told, asked without one.
pub(crate) fn refusal_of(
    service: Service,
    status: u16,
    body: &str,
    idempotent: bool,
) -> Option<Refused> {
    let limits = Limits::default();
    let mut splitter = Splitter::new("", limits);
    splitter.push(Bytes::copy_from_slice(body.as_bytes()));
    while let Ok(Some(_)) = splitter.next_row() {}
    let success = is_success(status);
    let judged = Judged {
        status,
        members: splitter.members(),
        text: (!success).then_some(body),
        idempotent,
    };
    match service {
        Service::Query => query::codes::judge(&judged),
        Service::Analytics => analytics::codes::judge(&judged),
        Service::Search => search::codes::judge(&judged),
        Service::Views => views::codes::judge(&judged),
        Service::Management | Service::KeyValue => (!success).then(|| judged.by_status()),
    }
}
