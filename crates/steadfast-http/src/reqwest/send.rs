//! Sends one reqwest request with retries.

use std::error::Error as StdError;
use std::future::Future;

use http::{Extensions, HeaderMap, StatusCode};
use reqwest::{Request, RequestBuilder, Response, Url};
use steadfast::failure::Safety;
use steadfast::{Error, FailFast, Failure, reason};

use super::kept::KeptRequest;
use super::redirect::watched;
use crate::classify::cannot_resend;
use crate::extensions::AttemptMark;
use crate::http_retry::{self, AnyResponse, HttpRetry, fail_at_once};
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
    ) -> impl Future<Output = Result<Response, Error<reqwest::Error>>> + Send;
}

impl SendWithRetry for RequestBuilder {
    async fn send_with_retry(self, retry: &HttpRetry) -> Result<Response, Error<reqwest::Error>> {
        let (client, request) = self.build_split();
        match request {
            Ok(request) => run(retry, None, request, |request, _| client.execute(request)).await,
            Err(error) => {
                let failure = Failure::not_sent(&reason::OPERATION_FAILED)
                    .with_safety(Safety::No)
                    .with_note("the request could not be built");
                let retry = retry.retry(FailFast::new()).operation("build");
                Err(fail_at_once(retry, failure, error))
            }
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for reqwest::RequestBuilder {}
}

/// Sends a request by `send`, attempt by attempt. Dropping the future drops the
/// attempt that is under way.
pub(super) async fn run<E, F>(
    retry: &HttpRetry,
    outer: Option<&AttemptMark>,
    mut request: Request,
    mut send: impl FnMut(Request, AttemptMark) -> F,
) -> Result<Response, Error<E>>
where
    E: StdError + Send + 'static,
    F: Future<Output = Result<Response, E>>,
{
    let method = request.method().clone();
    retry.add_key(&method, request.headers_mut());
    let kept = KeptRequest::of(&mut request);
    let address = || address(&kept.url);
    let head = RequestHead::new(&method, request.url().path(), request.headers());
    let call = retry.call(&head, outer, address);
    let unseen = retry.unseen_redirects(&call);
    let (mut first, kept) = (Some(request), &kept);
    http_retry::send(retry, &call, address, |attempt| {
        let request = first.take().or_else(|| kept.request())?;
        let sending = send(request, attempt);
        Some(async move {
            let (result, redirects) = watched(&kept.url, unseen, sending).await;
            retry.check(result, redirects).map_err(|failed| {
                failed.map(|failure| match kept.is_lost() {
                    true => cannot_resend(failure, "the body is a stream"),
                    false => failure,
                })
            })
        })
    })
    .await
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

    fn extensions_mut(&mut self) -> &mut Extensions {
        self.extensions_mut()
    }
}
