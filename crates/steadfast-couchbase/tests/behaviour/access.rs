//! Wrong credentials, buckets and certificates: fast and clear under the default
//! strategy, a timeout that names the reason under best effort (RFC 0049
//! revision 16; D1 to D4, D18 to D20).

use std::time::Instant;

use steadfast_cluster::fault::Fault;
use steadfast_cluster::users::Rights;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_couchbase::options::TlsOptions;
use steadfast_couchbase::{Cluster, ClusterOptions, Credentials, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

async fn with(server: &TestCluster, credentials: Credentials, options: ClusterOptions) -> Cluster {
    connect(&server.connection_string(), credentials, options).await
}

#[tokio::test]
async fn wrong_credentials_fail_fast_and_are_named_by_the_timeout_of_best_effort() {
    let server = server(3, 1).await;
    for (user, password) in [("app", "wrong"), ("nobody", "secret")] {
        let credentials = Credentials::password(user, password);
        let cluster = with(&server, credentials.clone(), ClusterOptions::new()).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        let start = Instant::now();
        let error = documents.insert("k", &1).timeout(LONG).await.unwrap_err();
        assert!(start.elapsed() < LONG / 3, "{error:#}");
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
        assert!(reasons(&error).contains(&"AUTHENTICATION_ERROR"));
        assert!(!error.is_ambiguous());
        // The second one does not wait at all.
        let error = documents.insert("k", &1).timeout(LONG).await.unwrap_err();
        assert_eq!(
            (error.attempts(), reasons(&error)),
            (1, vec!["AUTHENTICATION_ERROR"])
        );
        cluster.close().await;

        let cluster = with(&server, credentials, best_effort()).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        until_timeout_names("AUTHENTICATION_ERROR", async |time| {
            documents.insert("k", &1).timeout(time).await
        })
        .await;
    }
}

#[tokio::test]
async fn credentials_that_become_right_are_used_under_best_effort() {
    let server = server(1, 1).await;
    let cluster = with(
        &server,
        Credentials::password("app", "wrong"),
        best_effort(),
    )
    .await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let refused = server.fault(Fault::on(Opcode::SaslStep).pass());
    let write = spawn_upsert(&documents, "k", &1);
    until("the password was refused", || refused.fired() > 0).await;
    cluster.set_credentials(app()).unwrap();
    write.await.unwrap().unwrap();
}

/// A client that was locked out has been dialling more and more slowly. With new credentials it
/// neither goes by what was said of the old ones nor waits for its next turn.
#[tokio::test]
async fn new_credentials_are_used_at_once_after_a_rotation() {
    let server = server(3, 1).await;
    let cluster = with(&server, app(), ClusterOptions::new()).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    server.users().put("app", "rotated", Rights::admin());
    for node in server.nodes() {
        server.crash(node).await.unwrap();
        restart(&server, node).await;
    }
    let refused = server.fault(Fault::on(Opcode::SaslStep).pass());
    until("the old password was refused often", || {
        refused.fired() > 24
    })
    .await;
    let outcome = documents.get("k").timeout(LONG).await;
    fails_with(outcome, ErrorKind::AuthenticationFailure);

    let rotated = Credentials::password("app", "rotated");
    cluster.set_credentials(rotated).unwrap();
    let start = Instant::now();
    for at in 0..50 {
        let key = format!("k{at}");
        documents.upsert(&key, &1).timeout(LONG).await.unwrap();
    }
    assert!(start.elapsed() < LONG / 3);
}

#[tokio::test]
async fn a_seed_s_rejection_of_old_credentials_is_forgotten() {
    let server = server(1, 1).await;
    // The seed is the node under another name.
    let string = server.connection_string().replace("127.0.0.1", "localhost");
    let wrong = Credentials::password("app", "wrong");
    let cluster = Cluster::connect(&string, wrong).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.get("k").timeout(LONG).await;
    fails_with(outcome, ErrorKind::AuthenticationFailure);
    cluster.set_credentials(app()).unwrap();
    let start = Instant::now();
    while documents.upsert("k", &1).timeout(LONG).await.is_err() {
        assert!(start.elapsed() < LONG);
        tokio::time::sleep(ms(5)).await;
    }
    // The tracking connection gets there too, in its own time.
    let mut cleared = false;
    while !cleared {
        assert!(start.elapsed() < LONG);
        server.crash(server.nodes()[0]).await.unwrap();
        let error = documents.get("k").timeout(ms(50)).await.unwrap_err();
        cleared = error.kind() == ErrorKind::UnambiguousTimeout;
        restart(&server, server.nodes()[0]).await;
        documents
            .get("k")
            .timeout(LONG)
            .retry(every(ms(5)))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn an_unreachable_cluster_is_a_timeout_and_not_an_authentication_failure() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let string = format!("couchbase://{}", unused.local_addr().unwrap());
    drop(unused);
    let cluster = Cluster::connect(&string, app()).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.upsert("k", &1).timeout(ms(200)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["NODE_NOT_AVAILABLE"]);
    assert!(!error.is_ambiguous());
}

#[tokio::test]
async fn a_missing_or_forbidden_bucket_fails_fast() {
    let server = builder(2, 1)
        .user_with_rights("guest", "guest", Rights::buckets(["other"]))
        .start()
        .await
        .unwrap();
    let guest = || Credentials::password("guest", "guest");
    for (credentials, bucket, advice) in [
        (app(), "missing", "check its spelling"),
        (guest(), "missing", "check that it exists"),
        (guest(), BUCKET, "check that it exists"),
        (guest(), "other", "check its spelling"),
    ] {
        let cluster = with(&server, credentials.clone(), ClusterOptions::new()).await;
        let documents = cluster.bucket(bucket).default_collection();
        let start = Instant::now();
        let error = documents.upsert("k", &1).timeout(LONG).await.unwrap_err();
        assert!(start.elapsed() < LONG / 3);
        assert_eq!(error.kind(), ErrorKind::Couchbase, "{error:#}");
        assert!(
            reasons(&error).contains(&"BUCKET_ACCESS_ERROR"),
            "{error:#}"
        );
        assert!(error.to_string().contains(advice), "{error}");
        cluster.close().await;
        let cluster = with(&server, credentials, best_effort()).await;
        let documents = cluster.bucket(bucket).default_collection();
        until_timeout_names("BUCKET_ACCESS_ERROR", async |time| {
            documents.upsert("k", &1).timeout(time).await
        })
        .await;
    }
}

#[tokio::test]
async fn a_bucket_that_is_created_meanwhile_is_found_under_best_effort() {
    let server = server(2, 1).await;
    let cluster = client_with(&server, best_effort()).await;
    let documents = cluster.bucket("late").default_collection();
    let refused = server.fault(Fault::on(Opcode::SelectBucket).pass());
    let write = spawn_upsert(&documents, "k", &1);
    until("the bucket was refused", || refused.fired() > 1).await;
    let late = BucketSettings::new("late").vbuckets(VBUCKETS);
    server.create_bucket(late).await.unwrap();
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_bucket_that_is_not_ready_on_a_node_is_waited_for_under_the_default_strategy() {
    let server = server(1, 1).await;
    let not_ready = Fault::on(Opcode::SelectBucket).times(4);
    let not_ready = server.fault(not_ready.answer(Status::KeyNotFound));
    let cluster = client(&server).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    assert_eq!(not_ready.fired(), 4);
}

/// Other nodes have the bucket, so the one that does not is starting.
#[tokio::test]
async fn a_bucket_that_one_node_does_not_have_is_not_missing() {
    let server = server(2, 0).await;
    let starting = Fault::on(Opcode::SelectBucket).node(server.nodes()[0]);
    let starting = server.fault(starting.answer(Status::KeyNotFound));
    let cluster = client(&server).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let on_other = key_on(&server, server.nodes()[1]);
    documents.upsert(&on_other, &1).timeout(LONG).await.unwrap();
    // These take longer than a missing bucket is waited for.
    until("the node was asked often", || starting.fired() >= 12).await;
    let on_starting = key_on(&server, server.nodes()[0]);
    let outcome = documents.get(&on_starting).timeout(ms(50)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert_eq!(reasons(&error), ["NODE_NOT_AVAILABLE"], "{error:#}");
    drop(starting);
    documents
        .upsert(&on_starting, &1)
        .timeout(LONG)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_recreated_bucket_has_new_collection_ids() {
    let server = server(2, 1).await;
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    for number in 0..5 {
        server
            .create_scope(BUCKET, &format!("filler{number}"))
            .unwrap();
    }
    let cluster = client_with(&server, best_effort()).await;
    let documents = cluster.bucket(BUCKET).collection("s", "c");
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    server.drop_bucket(BUCKET).await.unwrap();
    let again = BucketSettings::new(BUCKET).vbuckets(VBUCKETS);
    server.create_bucket(again).await.unwrap();
    server.create_scope(BUCKET, "s").unwrap();
    server.create_collection(BUCKET, "s", "other", 0).unwrap();
    server.create_collection(BUCKET, "s", "c", 0).unwrap();
    // The connections close in their own time, and this may meet that.
    while let Err(error) = documents.upsert("k", &2).timeout(LONG).await {
        assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
    }
    let found = server.document(BUCKET, "s.c", b"k").unwrap();
    assert!(found.is_some(), "it went into another collection");
}

async fn tls_server() -> TestCluster {
    builder(2, 1).tls(true).start().await.unwrap()
}

#[tokio::test]
async fn tls_works_with_the_cluster_s_authority_and_fails_fast_without() {
    let server = tls_server().await;
    let string = server.tls_connection_string().unwrap();
    let tls = TlsOptions::new().trust_pem(server.ca_pem().unwrap());
    let trusting = ClusterOptions::new().tls(tls);
    let cluster = connect(&string, app(), trusting).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    for number in 0..20 {
        let key = format!("k{number}");
        documents.upsert(&key, &number).timeout(LONG).await.unwrap();
        let found = documents.get(&key).await.unwrap();
        assert_eq!(found.content::<u32>().unwrap(), number);
    }
    cluster.close().await;

    let other = builder(1, 0).tls(true).start().await.unwrap();
    let tls = TlsOptions::new().trust_pem(other.ca_pem().unwrap());
    let mistrusting = ClusterOptions::new().tls(tls.clone());
    let cluster = connect(&string, app(), mistrusting).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let start = Instant::now();
    let error = documents.upsert("k", &1).timeout(LONG).await.unwrap_err();
    assert!(start.elapsed() < LONG / 3);
    assert_eq!(error.kind(), ErrorKind::Couchbase, "{error:#}");
    assert!(reasons(&error).contains(&"TLS_ERROR"), "{error:#}");
    assert!(error.to_string().contains("certificate"), "{error}");
    cluster.close().await;

    let patient = best_effort().tls(tls);
    let cluster = connect(&string, app(), patient).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    until_timeout_names("TLS_ERROR", async |time| {
        documents.upsert("k", &1).timeout(time).await
    })
    .await;
}

#[tokio::test]
async fn a_token_that_is_refused_is_an_authentication_error_until_a_new_one_is_accepted() {
    let server = tls_server().await;
    server.users().accept_token("good", "app");
    let string = server.tls_connection_string().unwrap();
    let options = || {
        let tls = TlsOptions::new().trust_pem(server.ca_pem().unwrap());
        ClusterOptions::new().tls(tls)
    };
    let good = Credentials::token("good");
    let cluster = connect(&string, good, options()).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    documents.upsert("k", &1).timeout(LONG).await.unwrap();
    cluster.close().await;

    let bad = Credentials::token("a-secret-token");
    let cluster = connect(&string, bad, options()).await;
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.upsert("k", &1).timeout(LONG).await;
    let error = fails_with(outcome, ErrorKind::AuthenticationFailure);
    assert!(reasons(&error).contains(&"AUTHENTICATION_ERROR"));
    let shown = format!("{error} {error:#} {error:?} {}", error.to_json());
    assert!(!shown.contains("a-secret-token"));
    cluster.set_credentials(Credentials::token("good")).unwrap();
    let start = Instant::now();
    while let Err(error) = documents.upsert("k", &2).timeout(LONG).await {
        assert_eq!(error.kind(), ErrorKind::AuthenticationFailure, "{error:#}");
        assert!(start.elapsed() < LONG);
        tokio::time::sleep(ms(5)).await;
    }
}

#[tokio::test]
async fn an_error_map_of_version_1_is_accepted() {
    let server = server(1, 1).await;
    let map =
        steadfast_wire::error_map::ErrorMap::shipped(steadfast_wire::error_map::MapVersion::V1);
    server.error_map().set_raw(Some(map.to_json()));
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let busy = Fault::on(Opcode::Get).times(2);
    // 0x51 is one that only the map explains: nothing happened, try again.
    let busy = server.fault(busy.answer(Status::from_code(0x51)));
    documents.upsert("k", &1).await.unwrap();
    documents.get("k").await.unwrap();
    assert_eq!(busy.fired(), 2);
}
