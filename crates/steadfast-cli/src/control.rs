//! Requests to the control endpoint of a running cluster.

use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::duration::show;
use crate::effect;
use crate::exit::{ambiguous, not_found, usage};

/// The largest accepted response: the address may belong to another server.
const MAX_RESPONSE: usize = 64 * 1024 * 1024;

/// The control address of a cluster.
#[derive(Args)]
pub(crate) struct ControlArgs {
    /// Control address with its token, as printed by `steadfast cluster`: TOKEN@127.0.0.1:40000
    #[arg(
        long,
        env = "STEADFAST_CONTROL",
        value_name = "TOKEN@HOST:PORT",
        hide_env_values = true,
        value_parser = address,
        global = true
    )]
    control: Option<String>,
    /// Time limit for each response of the cluster; waiting for a rebalance has no limit
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "10s",
        value_parser = crate::duration::parse_positive,
        global = true
    )]
    timeout: Duration,
    /// Print the cluster's response as JSON, and errors
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

impl ControlArgs {
    /// Replaces the address, and decides about JSON.
    pub(crate) fn at(self, address: &str, json: bool) -> Self {
        let control = Some(address.to_owned());
        Self {
            control,
            json,
            ..self
        }
    }

    /// Sends a request and returns the JSON response. An error response becomes an error
    /// with its message.
    ///
    /// Dropping the future closes the connection; the cluster may still do what was requested.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let Some(address) = &self.control else {
            return Err(usage(
                "no control address: give --control TOKEN@HOST:PORT or set STEADFAST_CONTROL, \
                 as printed by `steadfast cluster`",
            ));
        };
        let (token, address) = match address.split_once('@') {
            Some((token, address)) => (Some(token), address),
            None => (None, address.as_str()),
        };
        let limit = self.timeout;
        let exchange = exchange(address, token, method, path, body);
        let response = match tokio::time::timeout(limit, exchange).await {
            Ok(response) => response,
            Err(_) => Err(anyhow!(
                "{address} did not respond within {}: check that it is the control address \
                 printed by `steadfast cluster` and that the cluster is up, or give it more \
                 time with --timeout",
                show(limit)
            )),
        };
        response.map_err(|error| match effect::may_have_changed() {
            true => ambiguous(format_args!(
                "{error:#}; the cluster may still do what was requested"
            )),
            false => error,
        })
    }
}

async fn exchange(
    address: &str,
    token: Option<&str>,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> anyhow::Result<Value> {
    let stream = TcpStream::connect(address).await.map_err(|error| {
        anyhow!(
            "cannot connect to {address}: {error}; check that it is the control address \
             printed by `steadfast cluster`"
        )
    })?;
    let foreign = || format!("{address} is not the control endpoint of a steadfast cluster");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .with_context(foreign)?;
    // It ends with the response, or with the task that awaits it.
    let driving = tokio::spawn(connection);
    let body = body.map(Value::to_string).unwrap_or_default();
    if method != Method::GET {
        effect::begin();
    }
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", address)
        .header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::from(body)))?;
    let response = sender.send_request(request).await.with_context(foreign)?;
    let status = response.status();
    let kind = response.headers().get("content-type");
    let is_certificate = kind.is_some_and(|kind| kind == "application/x-pem-file");
    let bytes = Limited::new(response.into_body(), MAX_RESPONSE)
        .collect()
        .await;
    let bytes = bytes
        .map_err(|error| anyhow!("{}: {error}", foreign()))?
        .to_bytes();
    drop(sender);
    driving.await??;
    if is_certificate {
        return Ok(String::from_utf8_lossy(&bytes).into());
    }
    let body: Value = serde_json::from_slice(&bytes).with_context(foreign)?;
    if status.is_success() {
        return Ok(body);
    }
    if status.is_client_error() {
        effect::nothing_changed();
    }
    let problem = body["error"].as_str();
    let problem = problem.unwrap_or("the cluster rejected the request");
    Err(match status {
        StatusCode::NOT_FOUND => not_found(problem),
        _ => anyhow!("{problem}"),
    })
}

/// Parses TOKEN@HOST:PORT, or the URL that `steadfast cluster` prints.
fn address(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").unwrap_or(text);
    let address = address.trim_end_matches('/');
    let (token, place) = address.split_once('@').unwrap_or(("-", address));
    let is_token = !token.is_empty()
        && token
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    let parts = place.rsplit_once(':');
    match parts.map(|(host, port)| (host, port.parse::<u16>())) {
        Some((host, Ok(1..))) if is_host(host) && is_token => Ok(address.to_owned()),
        _ => Err("expected TOKEN@HOST:PORT, as printed by `steadfast cluster`".to_owned()),
    }
}

/// Decides whether the text looks like a host; the system decides whether it is one.
fn is_host(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "/@,?#".contains(c);
    let bracketed = text.starts_with('[') && text.ends_with(']');
    !text.is_empty() && !text.contains(odd) && (bracketed || !text.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_address_keeps_the_timeout() {
        let control = ControlArgs {
            control: None,
            timeout: Duration::from_secs(3),
            json: false,
        };
        let elsewhere = control.at("t@127.0.0.1:40000", true);
        assert_eq!(elsewhere.timeout, Duration::from_secs(3));
        assert_eq!(elsewhere.control.as_deref(), Some("t@127.0.0.1:40000"));
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (text, read) in [
            ("127.0.0.1:40000", "127.0.0.1:40000"),
            ("http://127.0.0.1:40000/", "127.0.0.1:40000"),
            ("[::1]:1", "[::1]:1"),
            ("localhost:65535", "localhost:65535"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(read), "{text}");
        }
        for text in [
            "",
            "localhost",
            ":1",
            "a:",
            "a:0",
            "a:65536",
            "a:-1",
            "a b:1",
            "::1:5",
            "user:pass@a:1",
            "https://a:1",
        ] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
