//! The two ways to retry tonic's calls.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::uri::PathAndQuery;
use steadfast::strategy::Cause;
use steadfast::{Backoff, RetryEvent, Stage, Standard, retry};
use steadfast_http::grpc::{StatusClassifier, retry_channel};
use steadfast_http::{HttpClassifier, HttpRetry};
use tonic::Status;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::server::Text;

/// The decision after a failed attempt.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) stage: Stage,
    pub(crate) waits: Option<Duration>,
    pub(crate) refused: Option<Cause>,
    pub(crate) note: Option<String>,
}

/// The result of a call and its decisions.
pub(crate) type Ended = (Result<String, Status>, Vec<Event>);

pub(crate) trait Call: Send + 'static {
    fn greet(uri: &str, idempotent: bool) -> impl Future<Output = Ended> + Send {
        Self::greet_under(quick(5), uri, idempotent)
    }

    /// Retries until a server responds.
    fn greet_patiently(uri: &str) -> impl Future<Output = Ended> + Send {
        Self::greet_under(quick(100), uri, false)
    }

    fn greet_under(
        strategy: Standard,
        uri: &str,
        idempotent: bool,
    ) -> impl Future<Output = Ended> + Send;
}

const METHOD: &str = "/test.Greeter/Greet";

fn quick(attempts: u32) -> Standard {
    let backoff = Backoff::constant(Duration::from_millis(20));
    let builder = Standard::builder().backoff(backoff).max_attempts(attempts);
    builder.build().unwrap()
}

fn channel(uri: &str) -> Channel {
    Endpoint::from_shared(uri.to_owned())
        .unwrap()
        .connect_lazy()
}

/// Makes a unary call as a generated client does.
async fn unary<T>(service: T, request: tonic::Request<Text>) -> Result<String, Status>
where
    T: GrpcService<Body>,
    T::ResponseBody: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut grpc = Grpc::new(service);
    grpc.ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static(METHOD);
    let codec = ProstCodec::<Text, Text>::default();
    let answer = grpc.unary(request, path, codec).await?;
    Ok(answer.into_inner().text)
}

fn ada() -> tonic::Request<Text> {
    tonic::Request::new(Text {
        text: "ada".to_owned(),
    })
}

/// The layer around the client's channel.
pub(crate) struct Layered;

impl Call for Layered {
    async fn greet_under(strategy: Standard, uri: &str, idempotent: bool) -> Ended {
        let events = Events::default();
        let retry = HttpRetry::new(strategy)
            .unwrap()
            .classify(HttpClassifier::grpc())
            .also_idempotent(move |request| idempotent && request.path == METHOD)
            .observe(events.observer());
        let answer = unary(retry_channel(channel(uri), retry), ada()).await;
        (answer, events.seen())
    }
}

/// Retries of single calls.
pub(crate) struct OneByOne;

impl OneByOne {
    /// Sends the remaining time to the server.
    pub(crate) async fn greet_within(uri: &str, timeout: Duration) -> Ended {
        Self::call(quick(5), uri, true, Some(timeout)).await
    }

    async fn call(
        strategy: Standard,
        uri: &str,
        idempotent: bool,
        timeout: Option<Duration>,
    ) -> Ended {
        let (events, channel) = (Events::default(), channel(uri));
        let observer = events.observer();
        let mut retry = retry(&strategy).operation("Greet").idempotent(idempotent);
        if let Some(timeout) = timeout {
            retry = retry.timeout(timeout);
        }
        let answer = retry
            .classify(StatusClassifier)
            .observe(&observer)
            .run(|attempt| {
                let (channel, mut request) = (channel.clone(), ada());
                if let Some(left) = attempt.remaining() {
                    request.set_timeout(left);
                }
                unary(channel, request)
            })
            .await;
        let answer = answer.map_err(|error| error.into_last_error().unwrap());
        (answer, events.seen())
    }
}

impl Call for OneByOne {
    async fn greet_under(strategy: Standard, uri: &str, idempotent: bool) -> Ended {
        Self::call(strategy, uri, idempotent, None).await
    }
}

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    fn observer(&self) -> impl Fn(&RetryEvent<'_>) + Send + Sync + 'static {
        let events = Arc::clone(&self.0);
        move |event| {
            events.lock().unwrap().push(Event {
                stage: event.failure().stage,
                waits: event.delay(),
                refused: event.refusal().map(|refusal| refusal.cause()),
                note: event.failure().note().map(str::to_owned),
            });
        }
    }

    fn seen(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}
