//! The services that speak HTTP, under TLS.

use std::sync::Arc;

use crate::support::builder;
use crate::support::http::{self, Call, HttpReply};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::Script;
use steadfast_cluster::{Service, TestCluster};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The TLS port of a service, as a client would find it: in the map.
async fn port(cluster: &TestCluster, name: &str) -> u64 {
    let call = Call::new("GET", "/pools/default/nodeServices");
    let map = call.send(cluster, Service::Management).await.json();
    map["nodesExt"][0]["services"][name].as_u64().unwrap()
}

async fn send(cluster: &TestCluster, service: &str, call: &Call<'_>) -> HttpReply {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(cluster.ca_pem().unwrap().as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = format!("127.0.0.1:{}", port(cluster, service).await);
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(call.text().as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    // A connection that is cut ends without a goodbye, which is an error for TLS.
    let _ = stream.read_to_end(&mut bytes).await;
    http::parse(&bytes).unwrap()
}

#[tokio::test]
async fn every_service_answers() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let map = send(&cluster, "mgmtSSL", &Call::new("GET", "/pools/default/b/b")).await;
    assert_eq!(map.json()["name"], "b");
    let body = json!({"statement": "SELECT RAW 1"});
    for (service, path) in [
        ("n1qlSSL", "/query/service"),
        ("cbasSSL", "/analytics/service"),
    ] {
        let answer = send(&cluster, service, &Call::new("POST", path).json(&body)).await;
        assert_eq!(answer.results(), json!([1]));
    }
    let ping = send(&cluster, "ftsSSL", &Call::new("GET", "/api/ping")).await;
    assert_eq!(ping.status, 200);
    let view = send(
        &cluster,
        "capiSSL",
        &Call::new("GET", "/b/_design/d/_view/v"),
    )
    .await;
    assert_eq!(view.status, 404);
}

#[tokio::test]
async fn answers_are_cut_in_the_middle_and_not_garbled() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let fault = Fault::on_service(Service::Management).key("/pools/default/b/b");
    let _fault = cluster.fault(fault.cut_mid_response());
    let half = send(&cluster, "mgmtSSL", &Call::new("GET", "/pools/default/b/b")).await;
    assert!(!half.whole && half.body.starts_with('{'), "{}", half.body);
    let _script = cluster.script(
        Script::on(Service::Query)
            .rows([json!(1), json!(2)])
            .then_cut(),
    );
    let call = Call::new("POST", "/query/service").json(&json!({"statement": "SELECT 1"}));
    let cut = send(&cluster, "n1qlSSL", &call).await;
    assert!(!cut.whole && cut.body.ends_with("1,\n2"), "{}", cut.body);
    assert!(serde_json::from_str::<Value>(&cut.body).is_err());
}
