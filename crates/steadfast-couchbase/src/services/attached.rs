//! The services of a client: where they get what they need, and how users get
//! to them.
//!
//! Builders and rows hold the client's handle, so a client whose last handle is
//! dropped stays open for as long as rows are still being read.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderValue;
use serde::Serialize;
use steadfast::{Reason, RetryStrategy};
use steadfast_wire::config::{ClusterConfig, Service};
use tokio::sync::watch;

use super::Services;
use super::analytics::Analytics;
use super::host::Host;
use super::management::Management;
use super::query::Query;
use super::search::Search;
use super::views::View;
use crate::bucket::Bucket;
use crate::cluster::{Cluster, Handle};
use crate::error::Error;
use crate::observe::Reports;

impl Cluster {
    /// A query, in SQL++.
    ///
    /// ```no_run
    /// # async fn example(cluster: steadfast_couchbase::Cluster) -> steadfast_couchbase::Result<()> {
    /// let mut names = cluster
    ///     .query("SELECT RAW name FROM travel.inventory.airline WHERE country = $country")
    ///     .named("country", "France")?
    ///     .readonly(true)
    ///     .await?;
    /// while let Some(name) = names.next::<String>().await? {
    ///     println!("{name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn query(&self, statement: impl Into<String>) -> Query {
        super::query::query(self.host(), statement)
    }

    /// A query of the analytics service.
    pub fn analytics(&self, statement: impl Into<String>) -> Analytics {
        super::analytics::analytics(self.host(), statement)
    }

    /// A search of an index. The query is the service's JSON, such as
    /// `{"match": "airport", "field": "name"}`.
    ///
    /// # Errors
    /// If the query cannot be written as JSON.
    pub fn search(&self, index: &str, query: &(impl Serialize + ?Sized)) -> Result<Search, Error> {
        super::search::search(self.host(), index, query)
    }

    /// The management of the cluster.
    pub fn management(&self) -> Management {
        Management::new(self.host())
    }

    fn host(&self) -> Arc<dyn Host> {
        self.handle().clone()
    }
}

impl Bucket {
    /// A view of the bucket.
    pub fn view(&self, design_document: &str, view: &str) -> View {
        let host: Arc<dyn Host> = self.handle().clone();
        super::views::view(host, &self.core().name, design_document, view)
    }
}

impl Host for Handle {
    fn services(&self) -> &Services {
        &self.core.services
    }

    fn config(&self) -> Option<Arc<ClusterConfig>> {
        self.core.config()
    }

    fn network(&self) -> Option<Arc<str>> {
        let config = self.core.config()?;
        self.core.network_of(&config).map(Arc::from)
    }

    fn is_tls(&self) -> bool {
        self.core.tls.is_some()
    }

    /// A token is not shown to whoever listens, unless that was allowed: over
    /// HTTP it would be sent as it is. So is a password, and there is nothing
    /// better on a connection without TLS; whoever uses one accepts that.
    fn authorization(&self) -> Option<HeaderValue> {
        let credentials = self.core.credentials();
        let trusted = self.is_tls() || self.core.options.allow_secrets_without_tls;
        if credentials.user().is_none() && !trusted {
            return None;
        }
        let text = credentials.authorization()?;
        // What is no header was refused when the credentials were checked.
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

    fn agent(&self) -> &str {
        &self.core.agent
    }

    fn reports(&self) -> &Reports {
        &self.core.reports
    }
}
