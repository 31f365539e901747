//! The log of retries (RFC 0049: "Note the explicit requirements to log failed and
//! succeeded retry attempts"; RFC 0013: "The SDK should just hook this up into the
//! usual logging flow").

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions, Credentials, ErrorKind};
use steadfast_wire::error_map::{Attributes, ErrorDefinition};
use steadfast_wire::{Opcode, Status};
use tracing::field::{Field, Visit};
use tracing::span::{Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::fixture::*;

/// Keeps each event as one line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn count(&self, words: &[&str]) -> usize {
        let lines = self.0.lock().unwrap();
        let has_all = |line: &&String| words.iter().all(|word| line.contains(word));
        lines.iter().filter(has_all).count()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{}={value:?} ", field.name());
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        target.starts_with("steadfast") && !target.starts_with("steadfast_cluster")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{} ", event.metadata().level()));
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
async fn retries_that_the_error_map_wants_and_maps_that_cannot_be_read_are_in_the_log() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = server(1, 0).await;
    let odd = Status::from_code(0x0fe1);
    let definition = ErrorDefinition {
        name: "ODD".into(),
        description: "made up".into(),
        attributes: Attributes::RETRY_NOW,
        retry: None,
    };
    server.error_map().set(odd.code(), definition);
    let string = server.connection_string();
    let cluster = Cluster::connect(&string, app()).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.upsert("k", &1).await.unwrap();
    let _odd = server.fault(Fault::on(Opcode::Get).times(2).answer(odd));
    documents.get("k").await.unwrap();
    let retry = ["retry", "\"get\"", "KV_ERROR_MAP_RETRY_INDICATED"];
    assert_eq!(log.count(&retry), 2, "{:#?}", log.0);

    // A reason that is always retried, and a refusal, are in the log too.
    let moved = Fault::on(Opcode::Get).times(2).answer(Status::NotMyVbucket);
    let _moved = server.fault(moved);
    documents.get("k").await.unwrap();
    let retry = ["retry", "\"get\"", "KV_NOT_MY_VBUCKET"];
    assert_eq!(log.count(&retry), 2, "{:#?}", log.0);
    let _busy = server.fault(Fault::on(Opcode::Set).answer(Status::TemporaryFailure));
    let refused = documents.upsert("k", &1).retry(steadfast::FailFast::new());
    refused.await.unwrap_err();
    let refusal = ["not retried", "\"upsert\"", "KV_TEMPORARY_FAILURE"];
    assert_eq!(log.count(&refusal), 1, "{:#?}", log.0);
    cluster.close().await;

    let unread = ["WARN", "the error map cannot be read"];
    assert_eq!(log.count(&unread), 0, "{:#?}", log.0);
    server.error_map().set_raw(Some(b"{".to_vec()));
    let cluster = Cluster::connect(&string, app()).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.get("k").await.unwrap();
    assert!(log.count(&unread) > 0, "{:#?}", log.0);
}

#[tokio::test]
async fn a_thousand_failing_operations_log_as_many_warnings_as_states_change() {
    let log = Log::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    let server = server(1, 0).await;
    let wrong = Credentials::password("app", "wrong");
    let string = server.connection_string();
    let cluster = connect(&string, wrong, ClusterOptions::new()).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    for _ in 0..1000 {
        let error = documents.get("k").timeout(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
    }
    cluster.close().await;
    let mut seen = log.0.lock().unwrap().clone();
    seen.retain(|line| line.starts_with("WARN") || line.starts_with("ERROR"));
    // The node has two connections that track the topology: the cluster's, the bucket's.
    assert!((1..=2).contains(&seen.len()), "{seen:#?}");
    for line in seen {
        assert!(line.contains("AUTHENTICATION_ERROR"), "{line}");
    }
}
