//! One management request, whose response is read as a whole.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast_wire::config::Service;

use crate::cluster::Handle;
use crate::error::{Error, ErrorKind, HttpContext, OperationTarget};
use crate::request_options::{RequestOptions, request_option_methods};
use crate::services::http::{
    HttpOperation, HttpRequest, HttpResponse, HttpSender, ReadError, ServiceError, ServiceResponse,
    run,
};
use crate::services::path::pairs;
use crate::services::rows::Members;

/// The most bytes that are read of a response. The config of a cluster with a
/// thousand buckets is far smaller.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;

/// A management request; await it to send it.
#[must_use = "a request is not sent until it is awaited"]
pub struct ManagementRequest<T = ManagementResponse> {
    client: Arc<Handle>,
    operation: &'static str,
    request: HttpRequest,
    decode: Decode<T>,
    kind: ErrorKindOf,
    target: OperationTarget,
    options: RequestOptions,
}

/// Decodes a response; says what is wrong with one that has another shape.
type Decode<T> = fn(ManagementResponse) -> Result<T, &'static str>;

/// Returns the kind of error of a status and body, where the status alone does not
/// say it.
type ErrorKindOf = fn(u16, &str) -> Option<ErrorKind>;

/// A successful response.
#[derive(Clone)]
pub struct ManagementResponse {
    status: u16,
    body: Bytes,
}

/// An operation whose response is read as a whole. Every attempt sends the same.
pub(in crate::services) struct WholeResponse {
    pub(in crate::services) request: HttpRequest,
    pub(in crate::services) kind: ErrorKindOf,
}

impl HttpOperation for WholeResponse {
    type Output = ManagementResponse;

    fn request(&mut self, _: Option<Duration>) -> HttpRequest {
        self.request.clone()
    }

    /// Cancel-safe: dropping the future closes the connection.
    async fn read(
        &mut self,
        mut response: HttpResponse,
        _: &HttpSender,
    ) -> Result<ManagementResponse, ReadError> {
        let body = response.body.whole(MAX_RESPONSE).await?;
        let status = response.status;
        if response.is_success() {
            return Ok(ManagementResponse { status, body });
        }
        let text = String::from_utf8_lossy(&body);
        let response = ServiceResponse {
            status,
            members: &Members::default(),
            text: Some(&text),
            has_rows: false,
            idempotent: false,
            batch: false,
        };
        let error = response.by_status();
        let kind = (self.kind)(status, &text).unwrap_or(error.kind);
        Err(ReadError::Service(ServiceError { kind, ..error }))
    }
}

impl ManagementRequest {
    pub(super) fn new(
        client: Arc<Handle>,
        operation: &'static str,
        method: Method,
        path: String,
    ) -> Self {
        Self {
            client,
            operation,
            request: HttpRequest::new(method, path),
            decode: Ok,
            kind: |_, _| None,
            target: OperationTarget::default(),
            options: RequestOptions::default(),
        }
    }

    /// Sends a form as the body.
    pub fn form<'a>(mut self, fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let kind = "application/x-www-form-urlencoded";
        self.request = self.request.content(kind, pairs(fields));
        self
    }

    /// Sends JSON as the body.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn json(mut self, value: &(impl Serialize + ?Sized)) -> Result<Self, Error> {
        let body = serde_json::to_vec(value).map_err(|_| {
            Error::new(ErrorKind::EncodingFailure, self.operation)
                .because("the body cannot be written as JSON")
        })?;
        self.request = self.request.content("application/json", body);
        Ok(self)
    }

    /// Sends a body of another content type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.request = self.request.content(content_type, body);
        self
    }

    /// Returns nothing on success, and on an error the kind that this finds.
    pub(super) fn ignore_response(self, kind: ErrorKindOf) -> ManagementRequest<()> {
        self.decode(|_| Ok(()), kind)
    }

    /// Decodes the response, and finds kinds of errors that the status alone does not
    /// tell.
    pub(super) fn decode<T>(self, decode: Decode<T>, kind: ErrorKindOf) -> ManagementRequest<T> {
        ManagementRequest {
            client: self.client,
            operation: self.operation,
            request: self.request,
            decode,
            kind,
            target: self.target,
            options: self.options,
        }
    }
}

impl<T> ManagementRequest<T> {
    request_option_methods!(|it| it.options);

    /// Names the bucket, scope and collection that the request is about.
    pub(super) fn about(mut self, names: [Option<&str>; 3]) -> Self {
        let [bucket, scope, collection] = names.map(|name| name.map(Arc::from));
        self.target = OperationTarget {
            bucket,
            scope,
            collection,
            key: None,
        };
        self
    }

    /// Cancel-safe: dropping the future abandons the attempt in progress.
    async fn send(self) -> Result<T, Error> {
        let HttpRequest { method, path, .. } = &self.request;
        let mut sender = HttpSender::new(self.client, Service::Management, self.operation);
        sender.options = self.options;
        sender.idempotent = *method == Method::GET;
        sender.target = self.target;
        // Without parameters, which may be secrets.
        let bare = path.split('?').next().unwrap_or_default();
        sender.context = HttpContext {
            request: Some(format!("{method} {bare}")),
            ..HttpContext::default()
        };
        if !path.starts_with('/') {
            let error = sender.error(ErrorKind::InvalidArgument);
            return Err(error.because("the path does not begin with a slash"));
        }
        let operation = WholeResponse {
            request: self.request,
            kind: self.kind,
        };
        let response = run(operation, &mut sender).await?;
        (self.decode)(response).map_err(|problem| {
            let error = sender.error(ErrorKind::DecodingFailure);
            error.ambiguous(!sender.idempotent).because(problem)
        })
    }
}

impl<T: Send + 'static> IntoFuture for ManagementRequest<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Cancel-safe: dropping the future abandons the attempt in progress.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

impl ManagementResponse {
    /// Returns the HTTP status, which is a success.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Decodes the body as JSON.
    ///
    /// # Errors
    /// If it is no JSON, or no `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Error::new(ErrorKind::DecodingFailure, "management").because(format!(
                "the response has another shape, at line {line}, column {column}"
            ))
        })
    }
}

/// Shows no body, which may contain secrets.
impl fmt::Debug for ManagementResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagementResponse")
            .field("status", &self.status)
            .field("bytes", &self.body.len())
            .finish()
    }
}
