//! Full-text search.

pub(super) mod codes;
mod meta;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub use meta::{SearchHit, SearchMeta, SearchRows};
use serde::Serialize;
use serde_json::json;
use steadfast_wire::config::Service;

use super::answer::{Judged, Refused};
use super::common::{Common, common_methods};
use super::host::Host;
use super::http::{Exchange, Outgoing};
use super::operation::{self, RowService};
use super::path::segment;
use super::rows::Members;
use super::statement::Options;
use crate::error::{Error, HttpContext, Place};

const OPERATION: &str = "search";

/// A search to be run; await it to run it. Searches are idempotent.
#[must_use = "a search does nothing until it is awaited"]
pub struct Search {
    host: Arc<dyn Host>,
    path: String,
    options: Options,
    place: Place,
    common: Common,
}

/// A search of an index of the cluster. The query is the service's JSON, such as
/// `{"match": "airport", "field": "name"}`.
pub(crate) fn search(
    host: Arc<dyn Host>,
    index: &str,
    query: &(impl Serialize + ?Sized),
) -> Result<Search, Error> {
    let path = format!("/api/index/{}/query", segment(index));
    with_path(host, path, Place::default(), query)
}

/// A search of an index of a scope.
pub(crate) fn search_within(
    host: Arc<dyn Host>,
    bucket: &Arc<str>,
    scope: &Arc<str>,
    index: &str,
    query: &(impl Serialize + ?Sized),
) -> Result<Search, Error> {
    let path = format!(
        "/api/bucket/{}/scope/{}/index/{}/query",
        segment(bucket),
        segment(scope),
        segment(index)
    );
    let place = Place {
        scope: Some(scope.clone()),
        ..Place::of_bucket(bucket)
    };
    with_path(host, path, place, query)
}

fn with_path(
    host: Arc<dyn Host>,
    path: String,
    place: Place,
    query: &(impl Serialize + ?Sized),
) -> Result<Search, Error> {
    let mut options = Options::default();
    options.set_raw(OPERATION, "query", query)?;
    Ok(Search {
        host,
        path,
        options,
        place,
        common: Common::new(OPERATION, Service::Search),
    })
}

impl Search {
    /// At most so many hits.
    pub fn limit(mut self, limit: u32) -> Self {
        self.options.set("size", limit);
        self
    }

    /// Without the first so many.
    pub fn skip(mut self, skip: u32) -> Self {
        self.options.set("from", skip);
        self
    }

    /// With these stored fields of each hit.
    pub fn fields(mut self, fields: &[&str]) -> Self {
        self.options.set("fields", fields);
        self
    }

    /// With an explanation of each hit's score.
    pub fn explain(mut self, explain: bool) -> Self {
        self.options.set("explain", explain);
        self
    }

    /// Sets a member of the request that has no method here, such as `sort`,
    /// `facets` or `highlight`.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn raw(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.options.set_raw(OPERATION, name, value)?;
        Ok(self)
    }

    common_methods!(rows);
}

impl IntoFuture for Search {
    type Output = Result<SearchRows, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future abandons the attempt under way.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut exchange = Exchange::new(self.host, Service::Search);
            exchange.context = HttpContext {
                request: Some(format!("POST {}", self.path)),
                ..HttpContext::default()
            };
            let request = Request {
                path: self.path,
                options: self.options,
            };
            operation::run(request, exchange, self.common, true, self.place).await
        })
    }
}

/// What is sent.
struct Request {
    path: String,
    options: Options,
}

impl RowService for Request {
    type Meta = SearchMeta;

    const ROWS: &'static str = "hits";

    fn outgoing(&mut self, remaining: Option<Duration>) -> Outgoing {
        let mut options = self.options.clone();
        if let Some(remaining) = remaining
            && !options.has("ctl")
        {
            let milliseconds = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
            options.set("ctl", json!({"timeout": milliseconds}));
        }
        Outgoing::json(self.path.clone(), options.to_body())
    }

    fn judge(answer: &Judged<'_>) -> Option<Refused> {
        codes::judge(answer)
    }

    fn meta(members: &Members) -> SearchMeta {
        SearchMeta::read(members)
    }
}
