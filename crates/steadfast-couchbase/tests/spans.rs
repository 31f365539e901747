//! Spans of requests and attempts, by SDK RFC 0067 and OpenTelemetry's database
//! conventions, and the report of slow requests.
//!
//! A separate binary with one test, because the subscriber is global.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::options::ReportOptions;
use steadfast_couchbase::{ClusterOptions, DurabilityLevel};
use steadfast_wire::{Opcode, Status};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

mod fixture;

type Fields = HashMap<String, String>;

/// A span, with its parent and the events in it.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    parent: Option<u64>,
    fields: Fields,
    events: Vec<Fields>,
}

/// Keeps every span of the client. The id of a span is its place, from one.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    spans: Vec<Seen>,
    entered: Vec<u64>,
    /// Events outside of all spans.
    events: Vec<Fields>,
}

struct Reader<'a>(&'a mut Fields);

impl Visit for Reader<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast")
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut state = self.0.lock().unwrap();
        let mut seen = Seen {
            name: attributes.metadata().name(),
            parent: match attributes.parent() {
                Some(parent) => Some(parent.into_u64()),
                None => state.entered.last().copied(),
            },
            ..Seen::default()
        };
        attributes.record(&mut Reader(&mut seen.fields));
        state.spans.push(seen);
        Id::from_u64(state.spans.len() as u64)
    }

    fn record(&self, id: &Id, record: &Record<'_>) {
        let mut state = self.0.lock().unwrap();
        let span = &mut state.spans[id.into_u64() as usize - 1];
        record.record(&mut Reader(&mut span.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reader(&mut fields));
        let mut state = self.0.lock().unwrap();
        match state.entered.last().copied() {
            Some(id) => state.spans[id as usize - 1].events.push(fields),
            None => state.events.push(fields),
        }
    }

    fn enter(&self, id: &Id) {
        self.0.lock().unwrap().entered.push(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        let mut state = self.0.lock().unwrap();
        let place = state.entered.iter().rposition(|it| *it == id.into_u64());
        state.entered.remove(place.unwrap());
    }
}

impl Recorder {
    /// The last request of this operation, with its attempts.
    fn last(&self, operation: &str) -> (Seen, Vec<Seen>) {
        let state = self.0.lock().unwrap();
        let is_it =
            |seen: &Seen| seen.name == "request" && seen.fields["db.operation.name"] == operation;
        let place = state.spans.iter().rposition(is_it).unwrap();
        let id = Some(place as u64 + 1);
        let attempts = state.spans.iter().filter(|seen| seen.parent == id);
        (state.spans[place].clone(), attempts.cloned().collect())
    }
}

#[track_caller]
fn assert_fields(fields: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = fields.get(*name).map(String::as_str);
        assert_eq!(found, Some(*value), "{name} in {fields:#?}");
    }
}

// One thread: the subscriber knows one current span.
#[tokio::test]
async fn requests_and_attempts_have_spans_and_slow_ones_are_reported() {
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let server = fixture::server(2, 1).await;
    let reports = ReportOptions::new()
        .kv_threshold(Duration::from_nanos(1))
        .http_threshold(Duration::from_nanos(1))
        .interval(Duration::from_millis(20));
    let options = ClusterOptions::new().reports(reports);
    let (cluster, documents) = fixture::warm_client(&server, options).await;

    documents
        .upsert("k", &1)
        .durability(DurabilityLevel::Majority)
        .await
        .unwrap();
    let (request, attempts) = recorder.last("upsert");
    assert_fields(
        &request.fields,
        &[
            ("otel.name", "upsert"),
            ("otel.kind", "client"),
            ("db.system.name", "couchbase"),
            ("db.namespace", fixture::BUCKET),
            ("couchbase.service", "kv"),
            ("couchbase.scope.name", "_default"),
            ("couchbase.collection.name", "_default"),
            ("couchbase.durability", "majority"),
            ("couchbase.cluster.name", "steadfast"),
            ("couchbase.retries", "0"),
        ],
    );
    assert_eq!(request.fields["couchbase.cluster.uuid"].len(), 32);
    assert!(!request.fields.contains_key("otel.status_code"));
    let [attempt] = &attempts[..] else {
        panic!("{attempts:#?}")
    };
    assert_fields(
        &attempt.fields,
        &[
            ("otel.name", "dispatch_to_server"),
            ("server.address", "127.0.0.1"),
            ("network.transport", "tcp"),
            ("db.response.status_code", "0x0000"),
            ("attempt", "1"),
        ],
    );
    let local_id = &attempt.fields["couchbase.local_id"];
    assert_eq!(local_id.len(), "0123456789abcdef/0123456789abcdef".len());
    assert_eq!(attempt.fields["network.peer.address"], "127.0.0.1");
    assert_eq!(
        attempt.fields["network.peer.port"],
        attempt.fields["server.port"]
    );
    for field in [
        "server.port",
        "couchbase.server_duration",
        "couchbase.operation_id",
    ] {
        assert!(attempt.fields.contains_key(field), "{attempt:#?}");
    }

    // Each attempt says why it failed, and the retry is an event in the request.
    let busy = Fault::on(Opcode::Get).times(2);
    let busy = server.fault(busy.answer(Status::TemporaryFailure));
    documents.get("k").await.unwrap();
    drop(busy);
    let (request, attempts) = recorder.last("get");
    assert_fields(&request.fields, &[("couchbase.retries", "2")]);
    let retries = request
        .events
        .iter()
        .filter(|event| event["message"] == "retry");
    assert_eq!(retries.count(), 2, "{request:#?}");
    assert_eq!(attempts.len(), 3, "{attempts:#?}");
    for failed in &attempts[..2] {
        assert_fields(
            &failed.fields,
            &[
                ("reason", "KV_TEMPORARY_FAILURE"),
                ("stage", "responded"),
                ("otel.status_code", "ERROR"),
                ("db.response.status_code", "0x0086"),
            ],
        );
    }
    assert!(!attempts[2].fields.contains_key("reason"));

    // An error has a status and a type.
    documents.get("absent").await.unwrap_err();
    let (request, attempts) = recorder.last("get");
    let failed = [
        ("otel.status_code", "ERROR"),
        ("error.type", "DocumentNotFound"),
    ];
    assert_fields(&request.fields, &failed);
    assert_fields(&attempts[0].fields, &failed);

    // Other services have the same spans.
    let rows = cluster.query("SELECT 1").readonly(true).await;
    drop(rows);
    let (request, attempts) = recorder.last("query");
    assert_fields(
        &request.fields,
        &[
            ("couchbase.service", "query"),
            ("couchbase.cluster.name", "steadfast"),
        ],
    );
    assert_fields(
        &attempts[0].fields,
        &[
            ("server.address", "127.0.0.1"),
            ("db.response.status_code", "200"),
        ],
    );

    // The report of slow requests lists each service, with the server's time.
    let listed = || {
        let state = recorder.0.lock().unwrap();
        let slow = |event: &&Fields| event["message"] == "slow requests";
        let reports = state.events.iter().filter(slow);
        let reports: String = reports.map(|event| event["report"].clone()).collect();
        [
            "\"kv\":",
            "\"query\":",
            "\"operation_name\":\"upsert\"",
            "\"timeout_ms\":75000",
        ]
        .iter()
        .all(|part| reports.contains(part))
            && reports
                .split("\"last_server_duration_us\":")
                .any(|after| after.starts_with(|c: char| c.is_ascii_digit()))
    };
    fixture::until("both services are reported", listed).await;
}
