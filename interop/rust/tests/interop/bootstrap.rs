//! Connecting: plain and TLS, with right and wrong credentials.

use std::time::Duration;

use couchbase::cluster::Cluster as Sdk;
use couchbase::error::ErrorKind;
use couchbase::options::cluster_options::{ClusterOptions, TlsOptions};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use steadfast_cluster::TestCluster;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::users::Rights;
use steadfast_wire::Opcode;

use super::{BUCKET, PASSWORD, USER, cluster, connect, credentials, kind, within};

/// Where to connect, and how: the SDK takes TLS options for TLS only.
fn how(cluster: &TestCluster, tls: bool, user: &str, password: &str) -> (String, ClusterOptions) {
    let options = credentials(user, password);
    if tls {
        let address = cluster.tls_connection_string().unwrap();
        (address, options.tls_options(trust(cluster)))
    } else {
        (cluster.connection_string(), options)
    }
}

fn trust(cluster: &TestCluster) -> TlsOptions {
    let pem = cluster.ca_pem().unwrap();
    TlsOptions::new().add_ca_certificate(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap())
}

#[tokio::test]
async fn the_right_credentials_work_plain_and_with_tls() {
    let cluster = cluster(true).await;
    for tls in [false, true] {
        let (address, options) = how(&cluster, tls, USER, PASSWORD);
        let sdk = within(Sdk::connect(address, options)).await.unwrap();
        let collection = sdk.bucket(BUCKET).default_collection();
        within(collection.upsert("k", tls, None)).await.unwrap();
        let found = within(collection.get("k", None)).await.unwrap();
        assert_eq!(found.content_as::<bool>().unwrap(), tls);
    }
}

/// This SDK does not give up on wrong credentials: it asks again until they are right. That it
/// asks a second time shows that it was refused the first time.
#[tokio::test]
async fn wrong_passwords_and_unknown_users_are_refused_for_as_long_as_they_are() {
    let cluster = cluster(true).await;
    for tls in [false, true] {
        for (user, password) in [
            (USER, format!("wrong, TLS {tls}")),
            ("nobody", tls.to_string()),
        ] {
            let asked = cluster.fault(Fault::on(Opcode::SaslAuth).pass());
            let (address, options) = how(&cluster, tls, user, &password);
            let connecting = tokio::spawn(Sdk::connect(address, options));
            within(async {
                while asked.fired() < 2 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            })
            .await;
            assert!(!connecting.is_finished(), "{user}, TLS {tls}");
            cluster.users().put(user, &password, Rights::admin());
            within(connecting).await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn an_authority_that_nobody_vouches_for_is_not_trusted() {
    let cluster = cluster(true).await;
    let other = super::cluster(true).await;
    let options = credentials(USER, PASSWORD).tls_options(trust(&other));
    let connecting = Sdk::connect(cluster.tls_connection_string().unwrap(), options);
    if let Ok(connected) = tokio::time::timeout(Duration::from_secs(1), connecting).await {
        connected
            .err()
            .expect("the certificate is not signed by the other authority");
    }
}

#[tokio::test]
async fn a_bucket_that_does_not_exist_is_not_opened_and_is_once_it_does() {
    let cluster = cluster(false).await;
    let sdk = connect(&cluster).await;
    let collection = sdk.bucket("later").default_collection();
    let early = tokio::time::timeout(Duration::from_millis(500), collection.get("k", None)).await;
    assert!(early.map_or(true, |found| found.is_err()));
    cluster
        .create_bucket(steadfast_cluster::BucketSettings::new("later").vbuckets(16))
        .await
        .unwrap();
    let now = sdk.bucket("later").default_collection();
    assert_eq!(
        kind(within(now.get("k", None)).await),
        ErrorKind::DocumentNotFound
    );
}

#[tokio::test]
async fn a_user_who_may_only_read_cannot_write() {
    let cluster = cluster(false).await;
    let rights = Rights::buckets([BUCKET.to_owned()]).read_only();
    cluster.users().put("reader", "r", rights);
    let writer = connect(&cluster).await;
    let stored = writer.bucket(BUCKET).default_collection();
    within(stored.upsert("k", 1, None)).await.unwrap();
    let connecting = Sdk::connect(cluster.connection_string(), credentials("reader", "r"));
    let reader = within(connecting).await.unwrap();
    let collection = reader.bucket(BUCKET).default_collection();
    let found = within(collection.get("k", None)).await.unwrap();
    assert_eq!(found.content_as::<u64>().unwrap(), 1);
    let refused = kind(within(collection.upsert("k", 2, None)).await);
    assert_eq!(refused, ErrorKind::AuthenticationFailure);
}
