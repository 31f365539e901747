//! The response envelope that query and analytics share.

use std::time::Duration;

use tokio::time::Instant;

use serde_json::{Value, json};

use super::HttpResponse;
use super::rows::{Envelope, RowsSummary};

/// Metadata of a response.
#[derive(Debug, Clone)]
pub(super) struct ResponseMeta {
    request_id: String,
    client_context_id: Option<String>,
    pub started: Instant,
    /// The name of a plan that the client is to learn.
    pub prepared: Option<String>,
    pub signature: Option<Value>,
    /// Whether the client wants metrics.
    pub metrics: bool,
    /// How many documents were changed.
    pub mutations: u64,
    /// Whether the metrics say how many objects were looked at, as those of analytics do.
    pub counts_objects: bool,
    /// Whether the client asked for a profile.
    pub profile: bool,
}

impl ResponseMeta {
    pub(super) fn new(client_context_id: Option<&str>) -> Self {
        let id = format!("{:032x}", steadfast_os::random::u128());
        Self {
            request_id: format!(
                "{}-{}-{}-{}-{}",
                &id[..8],
                &id[8..12],
                &id[12..16],
                &id[16..20],
                &id[20..]
            ),
            client_context_id: client_context_id.map(str::to_owned),
            started: Instant::now(),
            prepared: None,
            signature: None,
            metrics: true,
            mutations: 0,
            counts_objects: false,
            profile: false,
        }
    }

    /// The same for analytics.
    pub(super) fn analytics(client_context_id: Option<&str>) -> Self {
        Self {
            counts_objects: true,
            ..Self::new(client_context_id)
        }
    }

    /// The answer around rows.
    pub(super) fn around_rows(self) -> Envelope {
        let mut head = self.opening();
        if let Some(signature) = &self.signature {
            head.push_str(&format!("\"signature\":{signature},\n"));
        }
        head.push_str("\"results\":[\n");
        Envelope {
            head,
            tail: Box::new(move |summary| {
                let errors = summary.error.iter().cloned().collect();
                let status = match &summary.error {
                    Some(error) => status_of(error, "errors"),
                    None => "success",
                };
                format!("\n],\n{}", self.closing(status, errors, summary))
            }),
        }
    }

    /// An answer that is nothing but an error.
    pub(super) fn failed(&self, status: u16, error: Value) -> HttpResponse {
        let closing = self.closing(
            status_of(&error, "fatal"),
            vec![error],
            &RowsSummary::default(),
        );
        HttpResponse::new(
            status,
            "application/json",
            format!("{}{closing}", self.opening()),
        )
    }

    fn opening(&self) -> String {
        let mut text = format!("{{\n\"requestID\":{},\n", json!(self.request_id));
        if let Some(id) = &self.client_context_id {
            text.push_str(&format!("\"clientContextID\":{},\n", json!(id)));
        }
        if let Some(name) = &self.prepared {
            text.push_str(&format!("\"prepared\":{},\n", json!(name)));
        }
        text
    }

    fn closing(&self, status: &str, errors: Vec<Value>, summary: &RowsSummary) -> String {
        let elapsed = milliseconds(self.started.elapsed());
        let mut metrics = json!({
            "elapsedTime": elapsed,
            "executionTime": elapsed,
            "resultCount": summary.rows,
            "resultSize": summary.bytes,
        });
        if self.counts_objects {
            metrics["processedObjects"] = 0.into();
        }
        if self.mutations > 0 {
            metrics["mutationCount"] = self.mutations.into();
        }
        let mut text = String::new();
        if !errors.is_empty() {
            metrics["errorCount"] = errors.len().into();
            text.push_str(&format!("\"errors\":{},\n", Value::Array(errors)));
        }
        if self.profile {
            let profile = json!({
                "phaseTimes": {"run": elapsed},
                "phaseCounts": {"fetch": summary.rows},
                "phaseOperators": {"fetch": 1},
                "executionTimings": {"#operator": "Sequence", "#stats": {"#phaseSwitches": 1}},
            });
            text.push_str(&format!("\"profile\":{profile},\n"));
        }
        text.push_str(&format!("\"status\":\"{status}\""));
        if self.metrics {
            text.push_str(&format!(",\n\"metrics\":{metrics}"));
        }
        text.push_str("\n}\n");
        text
    }
}

/// The status of a response that ends with an error.
fn status_of(error: &Value, usual: &'static str) -> &'static str {
    match error["code"].as_u64() {
        Some(1080) => "timeout",
        _ => usual,
    }
}

/// Time as the services write it, such as `1.234ms`.
fn milliseconds(time: Duration) -> String {
    format!("{:.3}ms", time.as_secs_f64() * 1000.0)
}
