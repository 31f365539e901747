//! The services with TLS.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use steadfast::Stage;
use steadfast_wire::config::ClusterConfig;

use super::support::{TestClient, builder, reasons};
use crate::options::ClusterOptions;

fn trusting(authority: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = authority {
        let authority = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        roots.add(authority).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

#[tokio::test]
async fn queries_use_tls_and_send_nothing_to_an_untrusted_server() {
    let cluster = builder(1).tls(true).start().await.unwrap();
    let client = TestClient::of(&cluster);
    let map = client.management().get("/pools/default/nodeServices");
    let map = map.await.unwrap();
    let client = TestClient::with(ClusterOptions::new(), Some(trusting(None).into()));
    client.set_config(ClusterConfig::parse(map.body(), "127.0.0.1").unwrap());
    let ask = || client.query("UPSERT INTO b VALUES ('k', 1)");
    let strict = || ask().retry(steadfast::FailFast::new());
    for untrusted in [None, Some(trusting(None))] {
        client.core().services.set_tls(untrusted);
        let error = strict().await.unwrap_err();
        assert_eq!(reasons(&error), ["SOCKET_NOT_AVAILABLE"], "{error:#}");
        let history = error.context().report().unwrap().request().history();
        assert_eq!(history.last().unwrap().failure.stage, Stage::NotSent);
    }
    assert_eq!(cluster.journal().applied(), 0);
    client
        .core()
        .services
        .set_tls(Some(trusting(cluster.ca_pem())));
    ask().await.unwrap();
    assert_eq!(cluster.journal().applied(), 1);
}
