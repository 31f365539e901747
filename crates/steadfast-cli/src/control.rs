//! Talking to the control endpoint of a running cluster.

use anyhow::{Context, bail};
use clap::Args;
use http_body_util::{BodyExt, Full};
use hyper::Method;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Where the cluster is.
#[derive(Args)]
pub(crate) struct Control {
    /// The control address that `steadfast cluster` printed, such as 127.0.0.1:40000
    #[arg(
        long,
        env = "STEADFAST_CONTROL",
        value_name = "HOST:PORT",
        global = true
    )]
    control: Option<String>,
}

impl Control {
    /// The cluster whose control endpoint is here.
    pub(crate) fn at(address: std::net::SocketAddr) -> Self {
        let control = Some(address.to_string());
        Self { control }
    }

    /// Sends a request and reads its JSON answer; a refusal becomes an error with its sentence.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let Some(address) = &self.control else {
            bail!(
                "which cluster? give --control HOST:PORT or set STEADFAST_CONTROL, \
                 as `steadfast cluster` prints it"
            );
        };
        // As a URL it is what `steadfast cluster` prints, too.
        let address = address.strip_prefix("http://").unwrap_or(address);
        let address = address.trim_end_matches('/');
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("no cluster answers at {address}"))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let driving = tokio::spawn(connection);
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = hyper::Request::builder()
            .method(method)
            .uri(path)
            .header("host", address)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        drop(sender);
        driving.await??;
        let answer: Value = serde_json::from_slice(&bytes)
            .with_context(|| format!("{address} is no control endpoint of a steadfast cluster"))?;
        if !status.is_success() {
            bail!(
                "{}",
                answer["error"].as_str().unwrap_or("the cluster refused")
            );
        }
        Ok(answer)
    }
}
