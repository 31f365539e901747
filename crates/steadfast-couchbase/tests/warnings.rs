//! Warnings in the log: one for each change of a terminal state, none for each
//! operation.
//!
//! A binary of its own with one test, because the subscriber is global.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use steadfast_couchbase::{ClusterOptions, Credentials, ErrorKind};
use tracing::field::{Field, Visit};
use tracing::span::{Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

mod fixture;

/// Keeps each warning as one line.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("steadfast_couchbase")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_thousand_failing_operations_log_as_many_warnings_as_states_change() {
    let warnings = Warnings::default();
    tracing::subscriber::set_global_default(warnings.clone()).unwrap();
    let server = fixture::server(1, 0).await;
    let wrong = Credentials::password("app", "wrong");
    let string = server.connection_string();
    let cluster = fixture::connect(&string, wrong, ClusterOptions::new()).await;
    let documents = cluster.bucket(fixture::BUCKET).default_collection();
    for _ in 0..1000 {
        let error = documents.get("k").timeout(fixture::LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
    }
    cluster.close().await;
    let seen = warnings.0.lock().unwrap().clone();
    // The node has two connections that track the topology: the cluster's, the bucket's.
    assert!((1..=2).contains(&seen.len()), "{seen:#?}");
    for line in seen {
        assert!(line.contains("AUTHENTICATION_ERROR"), "{line}");
    }
}
