//! With the feature `tracing`, what was decided can be read in the log.
#![cfg(feature = "tracing")]

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use steadfast::{BestEffort, Call, Failure, Orchestrator, StrategyExt, VirtualWorld, reason};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes each event as one line.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // The number of the request differs from run to run.
        if field.name() != "request" {
            let _ = write!(self.0, "{}={value:?} ", field.name());
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("steadfast")
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        let mut lines = self.0.lock().expect("no line panics");
        lines.push(line.0.trim_end().to_owned());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn every_retry_and_every_refusal_is_logged_with_its_reason() {
    let log = Log::default();
    tracing::subscriber::with_default(log.clone(), || {
        let world = VirtualWorld::new();
        let twice = BestEffort::default().max_attempts(2).unwrap();
        let mut request = Orchestrator::new(twice, Call::new("get").idempotent(true));
        let _ = request.begin(&world);
        let _ = request.handle_failure(Failure::responded(&reason::THROTTLED), &world);
        let _ = request.handle_waited(&world);
        let _ = request.handle_failure(Failure::in_flight(&reason::TIMEOUT), &world);
    });
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "message=retry operation=\"get\" attempt=1 reason=\"THROTTLED\" stage=\"responded\" delay=1ms capped=false",
            "message=not retried operation=\"get\" attempt=2 reason=\"TIMEOUT\" stage=\"in_flight\" cause=\"attempts_used_up\"",
        ]
    );
}
