//! Exports spans to OpenTelemetry, and draws those of a read.

use metrics_exporter_prometheus::PrometheusHandle;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, TracerProviderBuilder};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::{Cluster, Credentials};
use steadfast_wire::{Opcode, Status};
use tracing_subscriber::prelude::*;

use crate::{Done, metrics_of_client, picture};

/// Exports spans to the collector of `OTEL_EXPORTER_OTLP_ENDPOINT`, if it is set.
pub(crate) struct Traces(SdkTracerProvider);

impl Traces {
    pub(crate) fn start() -> Result<Self, Box<dyn std::error::Error>> {
        Self::with(SdkTracerProvider::builder())
    }

    fn with(builder: TracerProviderBuilder) -> Result<Self, Box<dyn std::error::Error>> {
        let resource = Resource::builder().with_service_name("export-example");
        let mut builder = builder.with_resource(resource.build());
        if std::env::var_os("OTEL_EXPORTER_OTLP_ENDPOINT").is_some() {
            builder = builder.with_batch_exporter(SpanExporter::builder().with_http().build()?);
        }
        let provider = builder.build();
        let spans = tracing_opentelemetry::layer().with_tracer(provider.tracer("steadfast"));
        // The client's spans are at the level `debug`.
        let filter =
            tracing_subscriber::EnvFilter::new("steadfast_couchbase=debug,steadfast=debug");
        tracing_subscriber::registry()
            .with(filter)
            .with(spans)
            .init();
        Ok(Self(provider))
    }

    /// Sends what is left.
    pub(crate) fn end(self) -> Done {
        self.0.force_flush()?;
        Ok(self.0.shutdown()?)
    }
}

/// Draws the spans of a read that is retried, and prints the metrics.
pub(crate) async fn draw(path: &str) -> Done {
    let metrics: PrometheusHandle = metrics_of_client()?.install_recorder()?;
    let kept = InMemorySpanExporter::default();
    let traces = Traces::with(SdkTracerProvider::builder().with_simple_exporter(kept.clone()))?;
    retried_read().await?;
    println!("{}", metrics.render());
    let spans = kept.get_finished_spans()?; // before the end, which drops them
    traces.end()?;
    let picture = picture::of_read(&spans).ok_or("no span of a read was exported")?;
    std::fs::write(path, picture)?;
    Ok(())
}

/// Reads a document from a cluster that is busy twice.
async fn retried_read() -> Done {
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
