//! Sends one reqwest request with retries.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::pin;

use super::library::{self, Request, RequestBuilder, Response, Url};
use http::{Extensions, HeaderMap, Method, StatusCode};
use steadfast::{Attempt, Error};

use super::redirect::{Hops, redirects, watched};
use crate::classify::Redirects;
use crate::http_retry::{self, AnyResponse, HttpDriver, HttpRetry, LostBody, SentRequest};
use crate::idempotent::RequestHead;

/// Adds `send` with retries to requests. See the [module](super).
pub trait SendWithRetry: sealed::Sealed {
    /// Sends the request, and sends it again where that is safe and useful.
    ///
    /// Dropping the future drops the attempt that is under way; its cost stays
    /// paid.
    fn send_with_retry(
        self,
        retry: &HttpRetry,
    ) -> impl Future<Output = Result<Response, Error<library::Error>>> + Send;
}

impl SendWithRetry for RequestBuilder {
    async fn send_with_retry(self, retry: &HttpRetry) -> Result<Response, Error<library::Error>> {
        let (client, request) = self.build_split();
        let mut retried = match request {
            Ok(request) => RetriedRequest::new(retry, false, request),
            Err(error) => return Err(retry.not_built(error)),
        };
        while let Some((request, _)) = retried.next().await {
            if let Some(response) = retried.attempt(client.execute(request)).await {
                return Ok(response);
            }
        }
        retried.give_up()
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::RequestBuilder {}
}

/// A request that is sent attempt by attempt.
pub(super) struct RetriedRequest<E> {
    driver: HttpDriver<Response, E>,
    first: Option<Request>,
    kept: KeptRequest,
}

impl<E: StdError + 'static> RetriedRequest<E> {
    /// Begins a request. If it is `marked`, an outer layer makes the retries.
    pub(super) fn new(retry: &HttpRetry, marked: bool, mut request: Request) -> Self {
        let method = request.method().clone();
        retry.add_key(&method, request.headers_mut());
        let head = RequestHead::new(&method, request.url().path(), request.headers());
        let mut driver = retry.driver(&head, marked, || address(request.url()));
        driver.begin();
        Self {
            driver,
            kept: KeptRequest {
                url: request.url().clone(),
                method,
                copy: request.try_clone(),
                hops: Hops::default(),
            },
            first: Some(request),
        }
    }

    /// Waits for the next attempt, and returns what it sends. Returns none if the request has
    /// ended.
    pub(super) async fn next(&mut self) -> Option<(Request, Attempt)> {
        while self.driver.next(&self.kept).await {
            let attempt = self.driver.attempt();
            let again = || self.kept.copy.as_ref()?.try_clone();
            match self.first.take().or_else(again) {
                Some(request) => return Some((request, attempt)),
                None => self.driver.fail_unmade(&self.kept),
            }
        }
        None
    }

    /// Makes an attempt. Returns its response if that is a success. Dropping the future drops
    /// the attempt.
    pub(super) async fn attempt(
        &mut self,
        sending: impl Future<Output = Result<Response, E>>,
    ) -> Option<Response> {
        let result = {
            let mut sending = pin!(watched(sending));
            let result = self.driver.run(sending.as_mut()).await;
            self.kept.hops = sending.take_value().unwrap_or_default().into_inner();
            result
        };
        self.driver.end(result, &self.kept)
    }

    /// Returns the result of a request that has ended: its last response, or an error.
    pub(super) fn give_up(mut self) -> Result<Response, Error<E>> {
        self.driver.give_up()
    }
}

/// What all attempts of a request share.
struct KeptRequest {
    url: Url,
    method: Method,
    /// What a retry sends; none if the body is a stream, which cannot be copied.
    copy: Option<Request>,
    /// The requests of the last attempt.
    hops: Hops,
}

impl<E: StdError + 'static> SentRequest<Response, E> for KeptRequest {
    fn address(&self) -> String {
        address(&self.url)
    }

    fn redirects(&self, result: &Result<Response, E>, unseen: Redirects) -> Redirects {
        redirects((&self.method, &self.url), unseen, result, self.hops)
    }

    fn lost(&self) -> Option<LostBody> {
        self.copy.is_none().then_some(LostBody::Stream)
    }
}

fn address(url: &Url) -> String {
    http_retry::address(url.host_str(), url.port(), Some(url.scheme()))
}

impl AnyResponse for Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn extensions(&self) -> &Extensions {
        self.extensions()
    }

    fn extensions_mut(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
}
