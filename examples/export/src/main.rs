//! An application whose client exports metrics to Prometheus and spans to OpenTelemetry.
//!
//!     cargo run                          # reads and writes until Ctrl-C
//!     cargo run -- picture trace.svg     # draws the trace of one read, and ends
//!
//! README.md says how to look at it.

#[cfg(feature = "traces")]
mod picture;
#[cfg(feature = "traces")]
mod traces;
mod workload;

use std::net::SocketAddr;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};
use steadfast_couchbase::metrics::{DURATION_BUCKETS, OPERATION_DURATION};

type Done = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => serve(SocketAddr::from(([127, 0, 0, 1], 9464))).await,
        ["serve", address] => serve(address.parse()?).await,
        #[cfg(feature = "traces")]
        ["picture", path] => traces::draw(path).await,
        _ => Err("usage: export [serve ADDRESS | picture FILE]".into()),
    }
}

/// Reads and writes until Ctrl-C, and serves the metrics at this address.
async fn serve(address: SocketAddr) -> Done {
    metrics_of_client()?.with_http_listener(address).install()?;
    #[cfg(feature = "traces")]
    let traces = traces::Traces::start()?;
    println!("metrics   http://{address}/metrics");
    workload::run().await?;
    #[cfg(feature = "traces")]
    traces.end()?;
    Ok(())
}

/// A recorder with the buckets of the client. Install it before the first operation.
fn metrics_of_client() -> Result<PrometheusBuilder, BuildError> {
    let durations = Matcher::Full(OPERATION_DURATION.to_owned());
    PrometheusBuilder::new().set_buckets_for_metric(durations, DURATION_BUCKETS)
}
