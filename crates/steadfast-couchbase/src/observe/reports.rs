//! Reports of slow requests, and of responses that came too late.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Finished;
use super::samples::Samples;
use crate::options::ReportOptions;

/// Collects what is reported at the end of each interval (SDK RFC 0067's threshold
/// and orphan reports).
pub(crate) struct Reports {
    options: ReportOptions,
    interval: Mutex<Interval>,
}

struct Interval {
    /// By the name of the service.
    slow: BTreeMap<&'static str, Samples<SlowRequest>>,
    orphans: Samples<Orphan>,
}

/// A slow request, without keys and values.
#[derive(Debug)]
pub(crate) struct SlowRequest {
    pub(crate) operation: &'static str,
    pub(crate) service: &'static str,
    pub(crate) retries: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last_opaque: Option<u32>,
    pub(crate) last_local: Option<Arc<str>>,
    pub(crate) last_remote: Option<Arc<str>>,
    pub(crate) last_server_duration: Option<Duration>,
}

/// A response that came after its operation had ended.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) operation: String,
    pub(crate) opaque: u32,
    pub(crate) local: Arc<str>,
    pub(crate) remote: Arc<str>,
    pub(crate) server_duration: Duration,
}

impl Reports {
    pub(crate) fn new(options: ReportOptions) -> Self {
        let most = options.sample_size;
        Self {
            interval: Mutex::new(Interval {
                slow: BTreeMap::new(),
                orphans: Samples::new(most),
            }),
            options,
        }
    }

    /// Whether a key-value operation is slow enough to be reported.
    #[inline]
    pub(crate) fn is_slow_kv(&self, finished: &Finished) -> bool {
        self.options.slow_requests && finished.took(self.options.kv_threshold)
    }

    /// Whether an HTTP operation is slow enough to be reported.
    pub(crate) fn is_slow_http(&self, finished: &Finished) -> bool {
        self.options.slow_requests && finished.took(self.options.http_threshold)
    }

    #[cold]
    pub(crate) fn slow(&self, took: Duration, request: SlowRequest) {
        let mut interval = self.interval.lock();
        let samples = interval.slow.entry(request.service);
        let most = self.options.sample_size;
        let samples = samples.or_insert_with(|| Samples::new(most));
        samples.add(took, request);
    }

    #[cold]
    pub(crate) fn orphan(&self, orphan: Orphan) {
        if self.options.orphans {
            let took = orphan.server_duration;
            self.interval.lock().orphans.add(took, orphan);
        }
    }

    /// Writes the log lines after each interval, until the future is dropped.
    ///
    /// Cancel-safe: dropping the future ends the reports.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            tokio::time::sleep(self.options.interval).await;
            self.report();
        }
    }

    /// Writes the log lines of the current interval.
    pub(crate) fn report(&self) {
        let mut interval = self.interval.lock();
        let mut slow = std::mem::take(&mut interval.slow);
        let orphans = interval.orphans.take();
        drop(interval);
        let slow = slow
            .iter_mut()
            .map(|(service, them)| (*service, them.take()));
        let slow = json_of(slow, slow_json);
        if let Some(slow) = slow {
            tracing::warn!(target: "steadfast_couchbase::slow", report = %slow, "slow requests");
        }
        if let Some(orphans) = json_of([("kv", orphans)], orphan_json) {
            tracing::warn!(
                target: "steadfast_couchbase::orphans",
                report = %orphans,
                "responses that came too late"
            );
        }
    }
}

type Taken<T> = Option<(u64, Vec<(Duration, T)>)>;

fn json_of<'s, T>(
    services: impl IntoIterator<Item = (&'s str, Taken<T>)>,
    json_of: fn(Duration, &T) -> Value,
) -> Option<Value> {
    let mut report = serde_json::Map::new();
    for (service, taken) in services {
        if let Some((count, samples)) = taken {
            let top: Vec<Value> = samples
                .iter()
                .map(|(took, it)| json_of(*took, it))
                .collect();
            let entry = json!({ "total_count": count, "top_requests": top });
            report.insert(service.to_owned(), entry);
        }
    }
    (!report.is_empty()).then_some(Value::Object(report))
}

fn slow_json(took: Duration, request: &SlowRequest) -> Value {
    json!({
        "total_duration_us": micros(took),
        "operation_name": request.operation,
        "retries": request.retries,
        "timeout_ms": request.timeout.map(|timeout| timeout.as_millis() as u64),
        "last_operation_id": request.last_opaque.map(|opaque| format!("{opaque:#x}")),
        "last_local_socket": request.last_local.as_deref(),
        "last_remote_socket": request.last_remote.as_deref(),
        "last_server_duration_us": request.last_server_duration.map(micros),
    })
}

fn orphan_json(_: Duration, orphan: &Orphan) -> Value {
    json!({
        "operation_name": orphan.operation,
        "last_operation_id": format!("{:#x}", orphan.opaque),
        "last_local_socket": &*orphan.local,
        "last_remote_socket": &*orphan.remote,
        "last_server_duration_us": micros(orphan.server_duration),
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
