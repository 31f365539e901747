//! tonic's unary calls.

use http::uri::PathAndQuery;
use steadfast::{Standard, retry};
use steadfast_http::grpc::{StatusClassifier, retry_channel};
use steadfast_http::{HttpClassifier, HttpRetry};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use super::{Contender, TIME_LIMIT};
use crate::contender;
use crate::server::{Server, Text};

pub(crate) fn contenders<'a>(runtime: &'a Runtime, server: &Server) -> Vec<Contender<'a>> {
    let uri = server.grpc_uri();
    let channel = || -> Channel {
        let _guard = runtime.enter();
        Endpoint::from_shared(uri.clone())
            .expect("it is an address")
            .connect_lazy()
    };
    let (bare, one, strategy) = (channel(), channel(), Standard::guidance());
    let http_retry = HttpRetry::guidance().classify(HttpClassifier::grpc());
    let limited = retry_channel(channel(), http_retry.clone().timeout(TIME_LIMIT));
    let layered = retry_channel(channel(), http_retry);
    vec![
        contender("bare", runtime, move || check(unary(bare.clone()))),
        contender("steadfast, RetryChannel", runtime, move || {
            check(unary(layered.clone()))
        })
        .allocates_at_most(7.0),
        contender("steadfast, RetryChannel, time limit", runtime, move || {
            check(unary(limited.clone()))
        })
        .allocates_at_most(8.0),
        contender("steadfast, StatusClassifier", runtime, move || {
            let (channel, strategy) = (one.clone(), strategy.clone());
            check(async move {
                retry(&strategy)
                    .classify(StatusClassifier)
                    .run(|_| unary(channel.clone()))
                    .await
            })
        })
        .allocates_at_most(1.0),
    ]
}

/// What a generated client does.
async fn unary<T>(service: T) -> Result<Response<Text>, Status>
where
    T: GrpcService<Body>,
    T::ResponseBody: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut grpc = Grpc::new(service);
    grpc.ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    let request = tonic::Request::new(Text {
        text: "a body".to_owned(),
    });
    let path = PathAndQuery::from_static("/bench.Echo/Echo");
    grpc.unary(request, path, ProstCodec::<Text, Text>::default())
        .await
}

async fn check<E: std::fmt::Debug>(answer: impl Future<Output = Result<Response<Text>, E>>) {
    assert_eq!(
        answer.await.expect("it is answered").into_inner().text,
        "a body"
    );
}
