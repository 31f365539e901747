//! A management call to be made.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_wire::config::Service;

use crate::error::{Error, ErrorKind, HttpContext, Place};
use crate::services::common::{Common, common_methods};
use crate::services::host::Host;
use crate::services::http::{Exchange, Outgoing};
use crate::services::path::pairs;
use crate::services::whole::{Answered, Whole};

/// A management call; await it to make it.
#[must_use = "nothing is asked until it is awaited"]
pub struct ManagementRequest<T = ManagementResponse> {
    host: Arc<dyn Host>,
    operation: &'static str,
    outgoing: Outgoing,
    read: Read<T>,
    kind: fn(u16, &str) -> Option<ErrorKind>,
    place: Place,
    common: Common,
}

/// Makes of an answer what was asked for; says what is wrong with one that is not
/// that.
type Read<T> = fn(Answered) -> Result<T, &'static str>;

/// What was answered.
#[derive(Clone)]
pub struct ManagementResponse {
    status: u16,
    body: Bytes,
}

impl ManagementRequest {
    pub(super) fn new(
        host: Arc<dyn Host>,
        operation: &'static str,
        method: Method,
        path: String,
    ) -> Self {
        Self {
            host,
            operation,
            outgoing: Outgoing::new(method, path),
            read: |Answered { status, body }| Ok(ManagementResponse { status, body }),
            kind: |_, _| None,
            place: Place::default(),
            common: Common::new(operation, Service::Management),
        }
    }

    /// With a form as its body.
    pub fn form<'a>(mut self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let kind = "application/x-www-form-urlencoded";
        self.outgoing = self.outgoing.content(kind, pairs(fields));
        self
    }

    /// With JSON as its body.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(|_| {
            Error::new(ErrorKind::EncodingFailure, self.operation)
                .because("the body cannot be written as JSON")
        })?;
        self.outgoing = self.outgoing.content("application/json", body);
        Ok(self)
    }

    /// With a body of another type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.outgoing = self.outgoing.content(content_type, body);
        self
    }

    /// The same call with an answer of another type.
    pub(super) fn read<T>(self, read: Read<T>) -> ManagementRequest<T> {
        ManagementRequest {
            host: self.host,
            operation: self.operation,
            outgoing: self.outgoing,
            read,
            kind: self.kind,
            place: self.place,
            common: self.common,
        }
    }
}

impl<T> ManagementRequest<T> {
    common_methods!();

    /// With somebody who knows more about a refusal than its status says.
    pub(super) fn kind(mut self, kind: fn(u16, &str) -> Option<ErrorKind>) -> Self {
        self.kind = kind;
        self
    }

    /// About this bucket, scope or collection.
    pub(super) fn about(mut self, place: [Option<&str>; 3]) -> Self {
        let [bucket, scope, collection] = place.map(|name| name.map(Arc::from));
        self.place = Place {
            bucket,
            scope,
            collection,
            key: None,
        };
        self
    }

    async fn send(self) -> Result<T, Error> {
        let Outgoing { method, path, .. } = &self.outgoing;
        let bare = path.split('?').next().unwrap_or_default();
        let context = HttpContext {
            // Without parameters, which may be secrets.
            request: Some(format!("{method} {bare}")),
            ..HttpContext::default()
        };
        if !path.starts_with('/') {
            let error = Error::new(ErrorKind::InvalidArgument, self.operation);
            return Err(error
                .with_http(context)
                .because("the path does not begin with a slash"));
        }
        let (call, strategy) = self.common.start(&*self.host);
        let call = call.idempotent(*method == Method::GET);
        let mut exchange = Exchange::new(self.host, Service::Management);
        exchange.context = context.clone();
        let whole = Whole {
            name: self.operation,
            exchange,
            outgoing: self.outgoing,
            kind: self.kind,
            place: self.place.clone(),
        };
        let answered = whole.run(call, &*strategy).await?;
        (self.read)(answered).map_err(|problem| {
            Error::new(ErrorKind::DecodingFailure, self.operation)
                .with_place(self.place)
                .with_http(context)
                .because(problem)
        })
    }
}

impl<T: Send + 'static> IntoFuture for ManagementRequest<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Dropping the future abandons the attempt under way.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl ManagementResponse {
    /// The HTTP status, which is one of success.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// If it is no JSON, or no `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Error::new(ErrorKind::DecodingFailure, "management").because(format!(
                "the answer is not what it was read as, at line {line}, column {column}"
            ))
        })
    }
}

/// Without the body, which may hold secrets.
impl fmt::Debug for ManagementResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagementResponse")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish()
    }
}
