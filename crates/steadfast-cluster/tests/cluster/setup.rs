//! The first commands of a connection, and the cluster map.

use std::time::Duration;

use crate::support::{BUCKET, Client, USUAL, active_and_other, builder, cluster, eventually};
use steadfast_cluster::fault::Fault;
use steadfast_cluster::users::Rights;
use steadfast_cluster::{NodeId, TestCluster};
use steadfast_wire::config::{ClusterConfig, ConfigNotification, ConfigVersion};
use steadfast_wire::error_map::ErrorMap;
use steadfast_wire::{Datatype, Feature, Frame, FrameBuilder, Magic, Opcode, Status};

const NODE: NodeId = NodeId::new(0);

fn parse(frame: &Frame) -> ClusterConfig {
    let json = frame.plain_value(1 << 20).unwrap();
    ClusterConfig::parse(&json, "127.0.0.1").unwrap()
}

fn get_config() -> FrameBuilder {
    FrameBuilder::request(Opcode::GetClusterConfig)
}

async fn with_features(cluster: &TestCluster, more: &[Feature]) -> Client {
    let features: Vec<Feature> = USUAL.iter().chain(more).copied().collect();
    Client::ready(cluster, NODE, &features).await
}

#[tokio::test]
async fn hello_grants_offered_features_unless_they_are_withheld() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::connect(&cluster, NODE).await;
    let asked = [
        Feature::Json,
        Feature::Tls,
        Feature::Collections,
        Feature::Json,
    ];
    assert_eq!(
        client.hello(&asked).await,
        [Feature::Json, Feature::Collections]
    );
    // The bucket's capabilities announce it, and SDKs refuse binary transactions without it.
    let binary = [Feature::SubdocBinaryXattr];
    assert_eq!(client.hello(&binary).await, binary);
    cluster.withhold_feature(Feature::Collections, true);
    assert_eq!(client.hello(&asked).await, [Feature::Json]);
    cluster.withhold_feature(Feature::Collections, false);
    assert_eq!(client.hello(&asked).await.len(), 2);
    let odd = FrameBuilder::request(Opcode::Hello).value([0, 1, 2]);
    assert_eq!(client.call(odd).await.status(), Status::InvalidArguments);
}

#[tokio::test]
async fn the_error_map_comes_in_the_version_asked_for() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::connect(&cluster, NODE).await;
    for (asked, given) in [(1u16, 1u16), (2, 2), (7, 2)] {
        let request = FrameBuilder::request(Opcode::GetErrorMap).value(asked.to_be_bytes());
        let answer = client.call(request).await;
        assert_eq!(
            ErrorMap::parse(answer.value()).unwrap().version.number(),
            given
        );
    }
    let zero = FrameBuilder::request(Opcode::GetErrorMap).value([0, 0]);
    assert_eq!(client.call(zero).await.status(), Status::InvalidArguments);
}

#[tokio::test]
async fn authentication_accepts_only_the_right_credentials() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::connect(&cluster, NODE).await;
    let mechanisms = client
        .call(FrameBuilder::request(Opcode::SaslListMechs))
        .await;
    assert!(mechanisms.value().starts_with(b"SCRAM-SHA512 "));
    assert_eq!(client.authenticate("app", "wrong").await, Status::AuthError);
    assert_eq!(
        client.authenticate("nobody", "secret").await,
        Status::AuthError
    );
    let unknown = FrameBuilder::request(Opcode::SaslAuth)
        .key("GSSAPI")
        .value("x");
    assert_eq!(client.call(unknown).await.status(), Status::AuthError);
    let step = FrameBuilder::request(Opcode::SaslStep)
        .key("SCRAM-SHA1")
        .value("x");
    assert_eq!(client.call(step).await.status(), Status::InvalidArguments);
    assert_eq!(
        client.select(BUCKET).await,
        Status::AccessError,
        "not authenticated"
    );
    assert_eq!(client.authenticate("app", "secret").await, Status::Success);
    assert_eq!(client.select(BUCKET).await, Status::Success);
    cluster.users().accept_token("tok", "app");
    let bearer = |token: &str| {
        let message = format!("n,,\u{1}auth=Bearer {token}\u{1}\u{1}");
        FrameBuilder::request(Opcode::SaslAuth)
            .key("OAUTHBEARER")
            .value(message)
    };
    assert_eq!(client.call(bearer("no")).await.status(), Status::AuthError);
    assert_eq!(
        client.get("k").await.status(),
        Status::AccessError,
        "a failure logs out"
    );
    assert_eq!(client.call(bearer("tok")).await.status(), Status::Success);
}

#[tokio::test]
async fn selecting_a_bucket_needs_the_right_and_a_node_that_has_it() {
    let cluster = builder(2, 1)
        .farewell(Duration::from_secs(60))
        .start()
        .await
        .unwrap();
    cluster
        .users()
        .put("limited", "l", Rights::buckets(["other"]));
    let mut client = Client::connect(&cluster, NODE).await;
    client.hello(USUAL).await;
    client.authenticate("limited", "l").await;
    assert_eq!(client.select(BUCKET).await, Status::AccessError);
    assert_eq!(
        client.select("missing").await,
        Status::AccessError,
        "this user learns nothing of buckets without rights on them"
    );
    assert_eq!(
        client.select("other").await,
        Status::KeyNotFound,
        "this user may open it, and it does not exist"
    );
    client.authenticate("app", "secret").await;
    assert_eq!(client.select("missing").await, Status::KeyNotFound);
    let joining = NodeId::new(1);
    let mut on_lost = Client::connect(&cluster, joining).await;
    on_lost.hello(USUAL).await;
    on_lost.authenticate("app", "secret").await;
    let failing = tokio::spawn({
        let cluster = cluster.clone();
        async move { cluster.fail_over(joining).await.unwrap() }
    });
    let status = loop {
        let status = on_lost.select(BUCKET).await;
        if status != Status::Success {
            break status;
        }
    };
    assert_eq!(
        status,
        Status::KeyNotFound,
        "the bucket exists and is not on this node"
    );
    // It would wait for the node to stop; that is not what this is about.
    failing.abort();
}

#[tokio::test]
async fn a_client_that_sends_its_version_gets_only_newer_maps() {
    let cluster = cluster(3, 1).await;
    let mut client = with_features(&cluster, &[Feature::GetClusterConfigWithKnownVersion]).await;
    let answer = client.call(get_config()).await;
    assert_eq!(answer.header().datatype, Datatype::JSON);
    let config = parse(&answer);
    assert_eq!(config.nodes.len(), 3);
    assert_eq!(config.this_node(), Some(0));
    let known = client.call(get_config().extras(config.version)).await;
    assert_eq!((known.status(), known.value()), (Status::Success, &b""[..]));
    let older = ConfigVersion {
        rev: config.version.rev - 1,
        ..config.version
    };
    assert!(
        !client
            .call(get_config().extras(older))
            .await
            .value()
            .is_empty()
    );
    let odd = client.call(get_config().extras([0; 4])).await;
    assert_eq!(odd.status(), Status::InvalidArguments);
}

#[tokio::test]
async fn a_connection_without_a_bucket_gets_the_map_of_the_cluster() {
    let cluster = cluster(2, 1).await;
    let mut client = Client::connect(&cluster, NODE).await;
    assert_eq!(
        client.call(get_config()).await.status(),
        Status::AccessError
    );
    client.hello(USUAL).await;
    client.authenticate("app", "secret").await;
    let config = parse(&client.call(get_config()).await);
    assert!(config.bucket.is_none());
    assert_eq!(config.nodes.len(), 2);
}

#[tokio::test]
async fn maps_are_compressed_for_clients_with_snappy_everywhere() {
    let cluster = cluster(1, 0).await;
    let mut client = with_features(&cluster, &[Feature::Snappy, Feature::SnappyEverywhere]).await;
    let answer = client.call(get_config()).await;
    assert_eq!(answer.header().datatype, Datatype::JSON | Datatype::SNAPPY);
    assert_eq!(parse(&answer).nodes.len(), 1);
}

#[tokio::test]
async fn not_my_vbucket_sends_each_map_once_to_clients_that_deduplicate() {
    let cluster = cluster(2, 1).await;
    let (_, other) = active_and_other(&cluster, "k");
    let mut plain = Client::ready(&cluster, other, USUAL).await;
    for _ in 0..2 {
        let refused = plain.get("k").await;
        assert_eq!(refused.status(), Status::NotMyVbucket);
        assert_eq!(parse(&refused).bucket.unwrap().name, BUCKET);
    }
    let features: Vec<Feature> = USUAL
        .iter()
        .copied()
        .chain([Feature::DedupeNotMyVbucketClustermap])
        .collect();
    let mut client = Client::ready(&cluster, other, &features).await;
    assert!(!client.get("k").await.value().is_empty());
    assert!(client.get("k").await.value().is_empty());
    cluster.create_scope(BUCKET, "new").unwrap();
    assert!(!client.get("k").await.value().is_empty(), "a newer map");
    assert!(client.get("k").await.value().is_empty());
    client.select(BUCKET).await;
    assert!(
        !client.get("k").await.value().is_empty(),
        "selecting starts over"
    );
}

#[tokio::test]
async fn changes_are_pushed_in_full_or_in_brief() {
    let cluster = cluster(1, 0).await;
    let duplex = Feature::Duplex;
    let mut full = with_features(&cluster, &[duplex, Feature::ClustermapChangeNotification]).await;
    let mut brief = with_features(
        &cluster,
        &[duplex, Feature::ClustermapChangeNotificationBrief],
    )
    .await;
    let mut neither = with_features(&cluster, &[]).await;
    cluster.create_scope(BUCKET, "new").unwrap();
    let pushed = full.receive().await.unwrap();
    assert_eq!(pushed.header().magic, Magic::ServerRequest);
    let notification = ConfigNotification::decode(&pushed).unwrap();
    assert_eq!(notification.bucket, Some(BUCKET));
    let config = parse(&pushed);
    assert_eq!(config.version, notification.version.version());
    assert_eq!(config.bucket.unwrap().manifest_uid, Some(1));

    let pushed = brief.receive().await.unwrap();
    let notification = ConfigNotification::decode(&pushed).unwrap();
    assert_eq!(notification.config, None);
    assert_eq!(notification.version.version(), config.version);

    assert_eq!(
        neither.get("k").await.status(),
        Status::KeyNotFound,
        "nothing came before this"
    );
}

#[tokio::test]
async fn dropping_the_bucket_closes_its_connections() {
    let cluster = cluster(1, 0).await;
    let mut client = with_features(&cluster, &[]).await;
    cluster.drop_bucket(BUCKET).await.unwrap();
    assert!(client.receive().await.is_none());
    assert!(cluster.drop_bucket(BUCKET).await.is_err());
}

#[tokio::test]
async fn responses_carry_the_server_duration_with_tracing() {
    let cluster = cluster(1, 0).await;
    let mut client = with_features(&cluster, &[Feature::Tracing]).await;
    let answer = client.get("k").await;
    assert_eq!(answer.header().magic, Magic::FlexibleResponse);
    assert_eq!(answer.framing_extras()[0], 0x02);
    assert_eq!(answer.framing_extras().len(), 3);
}

#[tokio::test]
async fn faults_apply_to_bootstrap_commands() {
    let cluster = cluster(1, 0).await;
    let _fault = cluster.fault(Fault::on(Opcode::SelectBucket).answer(Status::KeyNotFound));
    let mut client = Client::connect(&cluster, NODE).await;
    client.authenticate("app", "secret").await;
    assert_eq!(client.select(BUCKET).await, Status::KeyNotFound);
}

#[tokio::test]
async fn stat_noop_version_and_quit_answer() {
    let cluster = cluster(1, 0).await;
    let mut client = with_features(&cluster, &[]).await;
    client.send(FrameBuilder::request(Opcode::Stat)).await;
    let mut names = Vec::new();
    loop {
        let stat = client.receive().await.unwrap();
        if stat.key().is_empty() {
            break;
        }
        names.push(String::from_utf8(stat.key().to_vec()).unwrap());
    }
    assert!(names.contains(&"mem_used".to_owned()));
    let unknown = FrameBuilder::request(Opcode::Stat).key("nothing");
    assert_eq!(client.call(unknown).await.status(), Status::KeyNotFound);
    let version = client.call(FrameBuilder::request(Opcode::Version)).await;
    assert!(!version.value().is_empty());
    assert_eq!(
        client
            .call(FrameBuilder::request(Opcode::Quit))
            .await
            .status(),
        Status::Success
    );
    assert!(client.receive().await.is_none());
}

/// Clients send what follows their last step of authentication along with it.
#[tokio::test]
async fn later_commands_do_not_overtake_a_slow_authentication() {
    let cluster = cluster(1, 0).await;
    let _slow = cluster.fault(Fault::on(Opcode::SaslAuth).delay(Duration::from_millis(20)));
    let mut client = Client::connect(&cluster, NODE).await;
    client.hello(&[Feature::UnorderedExecution]).await;
    let auth = FrameBuilder::request(Opcode::SaslAuth).key("PLAIN");
    let auth = client.send(auth.value("\0app\0secret")).await;
    let select = FrameBuilder::request(Opcode::SelectBucket).key(BUCKET);
    let select = client.send(select).await;
    for opaque in [auth, select] {
        let answer = client.receive().await.unwrap();
        assert_eq!(
            (answer.opaque(), answer.status()),
            (opaque, Status::Success)
        );
    }
}

#[tokio::test]
async fn a_large_frame_before_authentication_closes_the_connection() {
    let cluster = cluster(1, 0).await;
    let node = cluster.nodes()[0];
    let large = vec![b'x'; 1024 * 1024];
    let mut stranger = Client::connect(&cluster, node).await;
    let mut bytes = bytes::BytesMut::new();
    let request = FrameBuilder::request(Opcode::Set)
        .key("k")
        .value(&large[..]);
    request.encode(&mut bytes).unwrap();
    // The header is enough: the server does not wait for the rest.
    stranger.send_bytes(&bytes[..100]).await;
    assert!(stranger.receive().await.is_none());
    let mut user = Client::ready(&cluster, node, USUAL).await;
    let large = String::from_utf8(large).unwrap();
    assert_eq!(user.set("k", &large).await.status(), Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_log_in_is_disconnected_and_one_that_did_stays() {
    let cluster = cluster(1, 0).await;
    let node = cluster.nodes()[0];
    let mut user = Client::ready(&cluster, node, USUAL).await;
    let mut stranger = Client::connect(&cluster, node).await;
    stranger.hello(USUAL).await;
    let start = tokio::time::Instant::now();
    assert!(stranger.receive().await.is_none());
    assert!(start.elapsed() >= std::time::Duration::from_secs(29));
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    assert_eq!(user.set("k", "1").await.status(), Status::Success);
}

#[tokio::test]
async fn the_change_protocol_is_not_supported_rather_than_unknown() {
    let cluster = cluster(1, 0).await;
    let mut user = Client::ready(&cluster, cluster.nodes()[0], USUAL).await;
    for (code, status) in [
        (0x50, Status::NotSupported),
        (0x53, Status::NotSupported),
        (0xf7, Status::UnknownCommand),
    ] {
        let request = FrameBuilder::request(Opcode::from_code(code)).key("stream");
        let reply = user.call(request).await;
        assert_eq!(reply.status(), status, "{code:#x}");
        let body = String::from_utf8_lossy(reply.value()).into_owned();
        assert_eq!(
            body.contains("not supported by this cluster: DCP"),
            status == Status::NotSupported
        );
    }
}

/// A command may be executed after the bucket was dropped and before its connection closes.
#[tokio::test]
async fn no_write_is_acknowledged_after_its_bucket_was_dropped() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    let held = cluster.fault(Fault::on(Opcode::Set).hold());
    let set = client.on(Opcode::Set, "k").extras([0u8; 8]).value("1");
    client.send(set).await;
    eventually("it is held", || held.fired() == 1).await;
    cluster.drop_bucket(BUCKET).await.unwrap();
    // Both are news to the connection: the bucket is gone, and the write may go on.
    drop(held);
    assert!(client.receive().await.is_none());
    assert_eq!(cluster.journal().applied(), 0);
}
