//! Canned responses of the HTTP services.
//!
//! A real cluster's query, analytics, search and views can do far more than this crate,
//! and fail in ways that depend on indexes, partitions and load. A test that needs such
//! a response writes it word for word, with a condition for the requests that get it.
//!
//! The oldest script that matches answers, until its count is used up. Without a
//! matching script the service answers by itself.
//!
//! ```
//! use steadfast_cluster::Service;
//! use steadfast_cluster::script::Script;
//!
//! // Two searches are turned away; the third finds something.
//! let busy = Script::on(Service::Search).answer(429, "too many requests").retry_after(1).times(2);
//! let found = Script::on(Service::Search).rows([serde_json::json!({"id": "k", "score": 1.0})]);
//! assert_eq!(busy.to_string(), "any search request, 2 times: answer 429");
//! assert_eq!(found.to_string(), "any search request: answer 200 with 1 rows");
//! ```

mod registry;
mod spec;

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::Value;

pub use registry::ScriptGuard;
pub(crate) use registry::Scripts;
pub use spec::{ScriptSpec, ScriptSpecError};
#[cfg(feature = "sqlpp")]
pub use steadfast_sqlpp::PlanLoss;

use super::rows::{Break, respond};
use super::{HttpRequest, HttpResponse, HttpSession};
use crate::Service;
use crate::topology::NodeId;

/// A condition and a response.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a script answers nothing until it is given to a cluster"]
pub struct Script {
    service: Service,
    node: Option<NodeId>,
    text: Option<String>,
    skip: u64,
    times: Option<u64>,
    status: u16,
    headers: Vec<(HeaderName, HeaderValue)>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Whole(Bytes),
    Rows {
        rows: Vec<Value>,
        ending: Ending,
        pause: Duration,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum Ending {
    Complete,
    Error(Value),
    Cut,
}

impl Script {
    /// Matches requests to this service; responds with an empty 200 by default.
    pub fn on(service: Service) -> Self {
        Self {
            service,
            node: None,
            text: None,
            skip: 0,
            times: None,
            status: 200,
            headers: Vec::new(),
            content: Content::Whole(Bytes::new()),
        }
    }

    /// Matches requests with this text in their path, statement or body. The statement of
    /// a plan counts as the statement of each execution.
    pub fn matching(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Matches on this node only.
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// Skips the first matching requests.
    pub fn skip(mut self, first: u64) -> Self {
        self.skip = first;
        self
    }

    /// Limits how often it answers.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Responds with this status and body.
    pub fn answer(mut self, status: u16, body: impl Into<Bytes>) -> Self {
        self.status = status;
        self.content = Content::Whole(body.into());
        self
    }

    /// Responds with these rows, streamed, in the service's own envelope.
    pub fn rows(mut self, rows: impl IntoIterator<Item = Value>) -> Self {
        self.content = Content::Rows {
            rows: rows.into_iter().collect(),
            ending: Ending::Complete,
            pause: Duration::ZERO,
        };
        self
    }

    /// Adds this error after the rows, where the service has its errors, such as
    /// `{"code": 5000, "msg": "…"}` for query.
    pub fn then_error(self, error: Value) -> Self {
        self.ending(Ending::Error(error))
    }

    /// Cuts the connection after the rows.
    pub fn then_cut(self) -> Self {
        self.ending(Ending::Cut)
    }

    /// Pauses before each row, so that streaming can be observed.
    pub fn pause(mut self, before_each_row: Duration) -> Self {
        if let Content::Rows { pause, .. } = &mut self.content {
            *pause = before_each_row;
        }
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds a `Retry-After` header with this many seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(RETRY_AFTER, seconds.into())
    }

    fn ending(mut self, wanted: Ending) -> Self {
        if matches!(self.content, Content::Whole(_)) {
            self = self.rows([]);
        }
        if let Content::Rows { ending, .. } = &mut self.content {
            *ending = wanted;
        }
        self
    }

    /// Returns whether the request matches, regardless of the count.
    fn matches(
        &self,
        request: &HttpRequest,
        session: &HttpSession,
        statement: Option<&str>,
    ) -> bool {
        self.service == session.service
            && self.node.is_none_or(|node| node == session.node.id)
            && self.text.as_ref().is_none_or(|text| {
                request.target().contains(text)
                    || statement.is_some_and(|statement| statement.contains(text))
                    || String::from_utf8_lossy(&request.body).contains(text)
            })
    }

    fn respond(&self, request: &HttpRequest, session: &HttpSession) -> HttpResponse {
        let mut response = match &self.content {
            Content::Whole(body) => HttpResponse {
                headers: Vec::new(),
                ..HttpResponse::new(self.status, "", body.clone())
            },
            Content::Rows {
                rows,
                ending,
                pause,
            } => {
                let last = match ending {
                    Ending::Complete => None,
                    Ending::Error(error) => Some(Err(Break::Error(error.clone()))),
                    Ending::Cut => Some(Err(Break::Cut)),
                };
                let envelope = super::envelope(request, session.service, rows.len());
                let rows = rows.clone().into_iter().map(Ok).chain(last);
                let response = respond(self.status, envelope, Box::new(rows), *pause);
                HttpResponse {
                    headers: Vec::new(),
                    ..response
                }
            }
        };
        response.headers.clone_from(&self.headers);
        if !self.headers.iter().any(|(name, _)| name == CONTENT_TYPE) {
            let json = HeaderValue::from_static("application/json");
            response = response.header(CONTENT_TYPE, json);
        }
        response
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "any {} request", self.service)?;
        if let Some(text) = &self.text {
            write!(formatter, " with {text:?}")?;
        }
        if let Some(node) = self.node {
            write!(formatter, " on node {node}")?;
        }
        if self.skip > 0 {
            write!(formatter, ", after the first {}", self.skip)?;
        }
        if let Some(times) = self.times {
            write!(formatter, ", {times} times")?;
        }
        write!(formatter, ": answer {}", self.status)?;
        if let Content::Rows { rows, ending, .. } = &self.content {
            write!(formatter, " with {} rows", rows.len())?;
            match ending {
                Ending::Complete => {}
                Ending::Error(_) => formatter.write_str(", then an error")?,
                Ending::Cut => formatter.write_str(", then cut")?,
            }
        }
        Ok(())
    }
}
