//! Compressed values.

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::ClusterOptions;
use steadfast_couchbase::collection::Raw;
use steadfast_couchbase::options::Compression;
use steadfast_wire::error_map::{Attributes, ErrorDefinition};
use steadfast_wire::{Datatype, Feature, Opcode, Status};

use crate::fixture::{Setup, server};

fn dull() -> String {
    "a".repeat(5000)
}

fn is_compressed(setup: &Setup, id: &str) -> bool {
    setup.stored(id).datatype.contains(Datatype::SNAPPY)
}

#[tokio::test]
async fn long_repetitive_values_are_compressed() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    users.upsert("dull", &dull()).await.unwrap();
    users
        .upsert("short", &"aaaaaaaaaaaaaaaaaaaa")
        .await
        .unwrap();
    let random: Vec<u8> = (0..5000).map(|_| fastrand::u8(..)).collect();
    users
        .upsert_raw("random", Raw::binary(random.clone()))
        .await
        .unwrap();
    assert!(is_compressed(&setup, "dull"));
    assert!(!is_compressed(&setup, "short"));
    assert!(!is_compressed(&setup, "random"));
    let found = users.get("dull").await.unwrap();
    assert_eq!(found.content::<String>().unwrap(), dull());
    let found = users.get("random").await.unwrap();
    assert_eq!(&found.bytes()[..], random);
    users.append("dull", dull()).await.unwrap();
    assert_eq!(users.get("dull").await.unwrap().bytes().len(), 10_002);
}

#[tokio::test]
async fn values_are_not_compressed_if_disabled_or_unsupported() {
    let options = ClusterOptions::new().compression(Compression::Off);
    let setup = Setup::new(server(1, 0).await, options).await;
    setup.users.upsert("dull", &dull()).await.unwrap();
    assert!(!is_compressed(&setup, "dull"));

    let server = server(1, 0).await;
    server.withhold_feature(Feature::Snappy, true);
    server.withhold_feature(Feature::SnappyEverywhere, true);
    let setup = Setup::new(server, ClusterOptions::new()).await;
    setup.users.upsert("dull", &dull()).await.unwrap();
    assert!(!is_compressed(&setup, "dull"));
    let found = setup.users.get("dull").await.unwrap();
    assert_eq!(found.content::<String>().unwrap(), dull());
}

#[tokio::test]
async fn each_attempt_is_for_the_connection_that_it_goes_to() {
    // The first attempt goes compressed to a server that takes it so. Its answer
    // ends the connection, and the next one takes nothing compressed.
    let server = server(1, 0).await;
    let status = Status::from_code(0xfff0);
    let definition = ErrorDefinition {
        name: "RECONNECT".to_owned(),
        description: "come again".to_owned(),
        attributes: Attributes::RETRY_NOW | Attributes::CONN_STATE_INVALIDATED,
        retry: None,
    };
    server.error_map().set(status.code(), definition);
    let setup = Setup::new(server, ClusterOptions::new()).await;
    for feature in [Feature::Snappy, Feature::SnappyEverywhere] {
        setup.server.withhold_feature(feature, true);
    }
    let once = Fault::on(Opcode::Set).times(1).answer(status);
    let once = setup.server.fault(once);
    setup.users.upsert("k", &dull()).await.unwrap();
    assert_eq!(once.fired(), 1);
    assert!(!is_compressed(&setup, "k"));
    let found = setup.users.get("k").await.unwrap();
    assert_eq!(found.content::<String>().unwrap(), dull());
}
