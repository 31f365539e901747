//! Map-reduce views.

pub(super) mod codes;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use steadfast_wire::config::Service;

use super::answer::{Judged, Refused};
use super::common::{Common, common_methods};
use super::host::Host;
use super::http::{Exchange, Outgoing};
use super::operation::{self, RowService};
use super::path::{pairs, segment};
use super::rows::{Members, Rows};
use super::statement::encode;
use crate::error::{Error, HttpContext, Place};

const OPERATION: &str = "view";

/// The rows of a view. Read them as [`ViewRow`], or as a type of your own.
pub type ViewRows = Rows<ViewMeta>;

/// A view to be read; await it to read it. Reading a view is idempotent.
#[must_use = "a view is not read until it is awaited"]
pub struct View {
    host: Arc<dyn Host>,
    path: String,
    parameters: Vec<(String, String)>,
    keys: Option<Box<RawValue>>,
    place: Place,
    common: Common,
}

/// How recent what a view shows must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewConsistency {
    /// Whatever the index has; it is brought up to date afterwards. The default.
    UpdateAfter,
    /// Whatever the index has.
    NotBounded,
    /// All that was written before.
    RequestPlus,
}

/// A row of a view.
#[derive(Debug, Deserialize)]
#[non_exhaustive]
pub struct ViewRow<K, V> {
    /// The document; none if the view reduces.
    #[serde(default)]
    pub id: Option<String>,
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
}

/// What the service said about a view that was read.
#[derive(Debug)]
#[non_exhaustive]
pub struct ViewMeta {
    /// How many rows the view has in all; none if it reduces.
    pub total_rows: Option<u64>,
    /// What was asked for in addition by the parameter `debug`.
    pub debug: Option<Box<RawValue>>,
}

/// A view of a bucket.
pub(crate) fn view(host: Arc<dyn Host>, bucket: &Arc<str>, design: &str, view: &str) -> View {
    View {
        host,
        path: format!(
            "/{}/_design/{}/_view/{}",
            segment(bucket),
            segment(design),
            segment(view)
        ),
        parameters: Vec::new(),
        keys: None,
        place: Place::of_bucket(bucket),
        common: Common::new(OPERATION, Service::Views),
    }
}

impl View {
    /// At most so many rows.
    pub fn limit(self, limit: u32) -> Self {
        self.parameter("limit", limit.to_string())
    }

    /// Without the first so many.
    pub fn skip(self, skip: u32) -> Self {
        self.parameter("skip", skip.to_string())
    }

    /// Sets how recent what it shows must be.
    pub fn consistency(self, consistency: ViewConsistency) -> Self {
        let stale = match consistency {
            ViewConsistency::UpdateAfter => "update_after",
            ViewConsistency::NotBounded => "ok",
            ViewConsistency::RequestPlus => "false",
        };
        self.parameter("stale", stale)
    }

    /// From the last row to the first.
    pub fn descending(self, descending: bool) -> Self {
        self.parameter("descending", descending.to_string())
    }

    /// With its reduce function, or without.
    pub fn reduce(self, reduce: bool) -> Self {
        self.parameter("reduce", reduce.to_string())
    }

    /// Reduced for each key.
    pub fn group(self, group: bool) -> Self {
        self.parameter("group", group.to_string())
    }

    /// Rows with this key.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("key", key)
    }

    /// Rows with these keys.
    ///
    /// # Errors
    /// If a key cannot be written as JSON.
    pub fn keys<K: Serialize>(mut self, keys: &[K]) -> Result<Self, Error> {
        self.keys = Some(encode(OPERATION, "keys", keys)?);
        Ok(self)
    }

    /// Rows from this key on.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn start_key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("startkey", key)
    }

    /// Rows up to this key.
    ///
    /// # Errors
    /// If the key cannot be written as JSON.
    pub fn end_key(self, key: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        self.json("endkey", key)
    }

    /// Sets a parameter of the service that has no method here.
    pub fn raw(self, name: &str, value: impl Into<String>) -> Self {
        self.parameter(name, value)
    }

    common_methods!(rows);

    fn parameter(mut self, name: &str, value: impl Into<String>) -> Self {
        self.parameters.retain(|(each, _)| each != name);
        self.parameters.push((name.to_owned(), value.into()));
        self
    }

    fn json(self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let value = encode(OPERATION, name, value)?;
        Ok(self.parameter(name, value.get()))
    }
}

impl IntoFuture for View {
    type Output = Result<ViewRows, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future abandons the attempt under way.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let parameters = self.parameters.iter();
            let parameters = parameters.map(|(name, value)| (name.as_str(), value.as_str()));
            let outgoing = request(&self.path, &pairs(parameters), self.keys.as_deref());
            let mut exchange = Exchange::new(self.host, Service::Views);
            exchange.context = HttpContext {
                // Without the parameters, which have values of documents in them.
                request: Some(format!("{} {}", outgoing.method, self.path)),
                ..HttpContext::default()
            };
            let request = Request { outgoing };
            operation::run(request, exchange, self.common, true, self.place).await
        })
    }
}

fn request(path: &str, parameters: &str, keys: Option<&RawValue>) -> Outgoing {
    let path = match parameters {
        "" => path.to_owned(),
        parameters => format!("{path}?{parameters}"),
    };
    match keys {
        Some(keys) => Outgoing::json(path, format!(r#"{{"keys":{keys}}}"#)),
        None => Outgoing::new(Method::GET, path),
    }
}

/// What is sent, always the same.
struct Request {
    outgoing: Outgoing,
}

impl RowService for Request {
    type Meta = ViewMeta;

    const ROWS: &'static str = "rows";

    fn outgoing(&mut self, _: Option<Duration>) -> Outgoing {
        self.outgoing.clone()
    }

    fn judge(answer: &Judged<'_>) -> Option<Refused> {
        codes::judge(answer)
    }

    fn meta(members: &Members) -> ViewMeta {
        ViewMeta {
            total_rows: members.hint("total_rows"),
            debug: members.hint("debug_info"),
        }
    }
}
