//! Exports the spans of the Couchbase client to OpenTelemetry and its metrics to Prometheus.
//!
//!     OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 cargo run -- trace.svg
//!
//! A test cluster answers "busy" twice, so the read has three attempts. The program prints the
//! metrics as Prometheus gets them, and draws the exported spans.

mod picture;

use metrics_exporter_prometheus::PrometheusBuilder;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Credentials};
use steadfast_wire::{Opcode, Status};
use tracing_subscriber::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Metrics. In a service, `with_http_listener(([0, 0, 0, 0], 9090))` and `install` instead
    // serve them to Prometheus.
    let prometheus = PrometheusBuilder::new()
        .set_buckets(&[0.001, 0.0025, 0.01, 0.025, 0.1, 0.5, 2.5])?
        .install_recorder()?;

    // Spans. The client's are at the level `debug`.
    let resource = Resource::builder().with_service_name("export-example");
    let kept = InMemorySpanExporter::default();
    let mut provider = SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_simple_exporter(kept.clone()); // only for the picture
    if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
        provider = provider.with_batch_exporter(SpanExporter::builder().with_http().build()?);
    }
    let provider = provider.build();
    let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("steadfast"));
    tracing_subscriber::registry()
        .with(tracing_subscriber::EnvFilter::new(
            "steadfast_couchbase=debug,steadfast=debug",
        ))
        .with(spans)
        .init();

    retried_read().await?;

    provider.force_flush()?;
    println!("{}", prometheus.render());
    let spans = kept.get_finished_spans()?; // before `shutdown`, which drops them
    provider.shutdown()?;
    let picture = picture::of_read(&spans).ok_or("no span of a read was exported")?;
    if let Some(path) = std::env::args_os().nth(1) {
        std::fs::write(path, picture)?;
    }
    Ok(())
}

/// Reads a document from a cluster that is busy twice.
async fn retried_read() -> Result<(), Box<dyn std::error::Error>> {
    let server = TestCluster::builder()
        .nodes(1)
        .bucket(BucketSettings::new("travel"))
        .user("app", "secret")
        .start()
        .await?;
    let login = Credentials::password("app", "secret");
    let cluster = Cluster::connect(&server.connection_string(), login).await?;
    let users = cluster.bucket("travel").default_collection();
    users
        .upsert("u:42", &serde_json::json!({"name": "Ada"}))
        .await?;
    let busy = Fault::on(Opcode::Get).times(2);
    let _busy = server.fault(busy.answer(Status::TemporaryFailure));
    users.get("u:42").await?;
    cluster.close().await;
    Ok(())
}
