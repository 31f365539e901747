//! The client, as its HTTP services see it.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use steadfast::{Reason, RetryStrategy};
use steadfast_wire::config::{ClusterConfig, Service};
use tokio::sync::watch;

use crate::cluster::Handle;
use crate::error::HttpContext;
use crate::observe::{Finished, SlowRequest, record};
use crate::services::Services;
use crate::services::host::Host;

/// The handle and not the core: a request under way keeps the client open.
impl Host for Handle {
    fn services(&self) -> &Services {
        &self.services
    }

    fn config(&self) -> Option<Arc<ClusterConfig>> {
        self.core.config()
    }

    fn network(&self) -> Option<Arc<str>> {
        let config = self.core.config()?;
        self.core.network_of(&config).map(Into::into)
    }

    fn is_tls(&self) -> bool {
        self.core.tls.is_some()
    }

    fn authorization(&self) -> Option<HeaderValue> {
        let text = self.core.credentials().authorization()?;
        // Credentials are checked for what no header can carry before they are used.
        let mut header = HeaderValue::from_str(&text).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    fn timeout(&self, service: Service) -> Duration {
        let options = &self.core.options;
        match service {
            Service::KeyValue => options.kv_timeout,
            Service::Management => options.management_timeout,
            Service::Query => options.query_timeout,
            Service::Search => options.search_timeout,
            Service::Analytics => options.analytics_timeout,
            Service::Views => options.view_timeout,
        }
    }

    fn strategy(&self) -> Arc<dyn RetryStrategy> {
        self.core.strategy.clone()
    }

    fn terminal(&self) -> Option<(&'static Reason, String)> {
        let rejected = self.core.terminals.of_cluster()?;
        Some((rejected.reason, rejected.note))
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.core.changes()
    }

    fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn finished(&self, finished: &Finished, context: &HttpContext) {
        record(finished, ["", "", ""]);
        let reports = &self.core.reports;
        if reports.is_slow_http(finished.elapsed) {
            let request = SlowRequest {
                operation: finished.operation,
                service: finished.service,
                retries: finished.retries,
                timeout: None,
                last_opaque: None,
                last_local: None,
                last_remote: context.dispatched_to.clone(),
                last_server_duration: None,
            };
            reports.slow(finished.elapsed, request);
        }
    }
}
