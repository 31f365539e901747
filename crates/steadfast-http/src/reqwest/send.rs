//! One request, sent until it is answered or shall not be sent any more.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::Arc;

use http::{Extensions, HeaderMap, StatusCode};
use reqwest::{Request, RequestBuilder, Response, Url};
use steadfast::failure::Safety;
use steadfast::{Attempt, Error, Failure, RetryStrategy, reason};

use super::redirect::{after_redirect, watched};
use crate::attempt::{self, Answer, Unsuccessful, failure, operation, settle};
use crate::http_retry::HttpRetry;
use crate::idempotent::RequestHead;

/// `send` with retries. See the [module](super).
pub trait SendWithRetry: sealed::Sealed {
    /// Sends the request, and sends it again where that is safe and of use.
    ///
    /// Dropping the future drops the attempt that is under way; what was paid
    /// for it stays paid.
    fn send_with_retry(
        self,
        policy: &HttpRetry,
    ) -> impl Future<Output = Result<Response, Error<reqwest::Error>>> + Send;
}

impl SendWithRetry for RequestBuilder {
    async fn send_with_retry(self, policy: &HttpRetry) -> Result<Response, Error<reqwest::Error>> {
        let (client, request) = self.build_split();
        match request {
            Ok(request) => {
                let strategy = policy.strategy_for(|| address(request.url()));
                run(policy, strategy, request, |request, _| {
                    client.execute(request)
                })
                .await
            }
            // Told by the same road as any other failure.
            Err(error) => {
                let mut error = Some(error);
                let retry = policy.retry(steadfast::FailFast::new());
                let result = retry
                    .operation("build")
                    .classify(failure)
                    .run(|_| {
                        let end = error.take().map(Err);
                        std::future::ready(Err(Unsuccessful {
                            end,
                            failure: Some(unbuilt()),
                        }))
                    })
                    .await;
                settle(result)
            }
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for reqwest::RequestBuilder {}
}

/// Sends a request by `send`, attempt by attempt.
pub(super) async fn run<E, F>(
    policy: &HttpRetry,
    strategy: Arc<dyn RetryStrategy>,
    request: Request,
    mut send: impl FnMut(Request, Attempt) -> F,
) -> Result<Response, Error<E>>
where
    E: StdError + 'static,
    F: Future<Output = Result<Response, E>>,
{
    let head = RequestHead::new(request.method(), request.url().path(), request.headers());
    let idempotent = policy.is_idempotent(&head);
    let operation = operation(request.method());
    let url = request.url().clone();
    let mut request = Some(request);
    let result = policy
        .retry(&*strategy)
        .operation(operation)
        .idempotent(idempotent)
        .classify(failure)
        .run(|attempt| {
            let copy = request.as_mut().and_then(|request| request.try_clone());
            // What cannot be copied is sent itself, and then is gone.
            let sending = copy.or_else(|| request.take());
            let gone = request.is_none();
            let sending = sending.map(|request| send(request, attempt));
            let (classifier, url) = (policy.classifier(), &url);
            async move {
                let (end, redirected) = match sending {
                    Some(sending) => {
                        let (end, redirected) = watched(url, sending).await;
                        (Unsuccessful::read(classifier, end), redirected)
                    }
                    None => {
                        let failure = Some(Failure::not_sent(&reason::OPERATION_FAILED));
                        (Err(Unsuccessful { end: None, failure }), false)
                    }
                };
                match end {
                    Ok(response) => Ok((response, attempt.number())),
                    Err(attempt) => Err(attempt.map_failure(|failure| {
                        let failure = failure.with_peer(address(url));
                        let failure = match redirected {
                            true => after_redirect(failure),
                            false => failure,
                        };
                        match gone {
                            true => streamed(failure),
                            false => failure,
                        }
                    })),
                }
            }
        })
        .await;
    settle(result)
}

/// Host and port of a request.
pub(super) fn address(url: &Url) -> String {
    attempt::address(url.host_str(), url.port(), Some(url.scheme()))
}

fn streamed(failure: Failure) -> Failure {
    let before = failure.note().unwrap_or("failed");
    let note = format!("{before}; the body is a stream, so it cannot be sent again");
    failure.with_safety(Safety::No).with_note(note)
}

fn unbuilt() -> Failure {
    Failure::not_sent(&reason::OPERATION_FAILED)
        .with_safety(Safety::No)
        .with_note("the request could not be built")
}

impl Answer for Response {
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
