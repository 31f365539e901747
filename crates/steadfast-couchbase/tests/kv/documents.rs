//! Writing, reading and removing whole documents.

use serde_json::{Value, json};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::collection::{Format, Raw};
use steadfast_wire::Opcode;

use crate::fixture::{Setup, fails_with, server};

#[tokio::test]
async fn a_document_is_inserted_read_replaced_and_removed() {
    let users = &Setup::simple().await.users;
    let inserted = users.insert("ada", &json!({"name": "Ada"})).await.unwrap();
    let outcome = users.insert("ada", &json!({})).await;
    fails_with(outcome, ErrorKind::DocumentExists);

    let found = users.get("ada").await.unwrap();
    assert_eq!(found.cas(), inserted.cas());
    assert_eq!(found.format(), Format::Json);
    assert_eq!(found.flags(), 0x0200_0000);
    assert_eq!(found.expiry(), None);
    assert_eq!(found.content::<Value>().unwrap(), json!({"name": "Ada"}));

    let replaced = users.replace("ada", &1).cas(found.cas()).await.unwrap();
    let outcome = users.replace("ada", &2).cas(found.cas()).await;
    let error = fails_with(outcome, ErrorKind::CasMismatch);
    assert_eq!(error.attempts(), 1);
    let outcome = users.remove("ada").cas(found.cas()).await;
    fails_with(outcome, ErrorKind::CasMismatch);
    users.remove("ada").cas(replaced.cas()).await.unwrap();
    fails_with(users.get("ada").await, ErrorKind::DocumentNotFound);
    fails_with(users.remove("ada").await, ErrorKind::DocumentNotFound);
    fails_with(users.replace("ada", &3).await, ErrorKind::DocumentNotFound);
    users.upsert("ada", &4).await.unwrap();
    assert_eq!(users.get("ada").await.unwrap().content::<u8>().unwrap(), 4);
}

#[tokio::test]
async fn a_write_returns_its_mutation_token() {
    let setup = Setup::simple().await;
    let first = setup.users.upsert("ada", &1).await.unwrap();
    let second = setup.users.upsert("ada", &2).await.unwrap();
    let (first, second) = (first.token().unwrap(), second.token().unwrap());
    assert_eq!(&*first.bucket, "travel");
    assert_eq!(first.vbucket, steadfast_wire::vbucket::of_key(b"ada", 64));
    assert_eq!(first.vbucket, second.vbucket);
    assert_eq!(first.vbucket_uuid, second.vbucket_uuid);
    assert_eq!(second.seqno, first.seqno + 1);
}

#[tokio::test]
async fn a_document_may_be_bytes_or_text() {
    let users = &Setup::simple().await.users;
    users
        .upsert_raw("picture", Raw::binary(&[0, 159, 146][..]))
        .await
        .unwrap();
    users
        .insert_raw("letter", Raw::text("Dear Ada"))
        .await
        .unwrap();
    users
        .replace_raw("letter", Raw::with_flags("Dear Bob", 7))
        .await
        .unwrap();
    users
        .upsert_raw("encoded", Raw::json(r#"{"a": 1}"#))
        .await
        .unwrap();

    let picture = users.get("picture").await.unwrap();
    assert_eq!(picture.format(), Format::Binary);
    assert_eq!(&picture.bytes()[..], [0, 159, 146]);
    assert_eq!(
        picture.text().unwrap_err().kind(),
        ErrorKind::DecodingFailure
    );
    let error = fails_with(picture.content::<Value>(), ErrorKind::DecodingFailure);
    assert!(error.to_string().contains("not written as JSON"), "{error}");

    let letter = users.get("letter").await.unwrap();
    assert_eq!((letter.flags(), letter.text().unwrap()), (7, "Dear Bob"));
    assert_eq!(letter.format(), Format::Unknown);
    let encoded = users.get("encoded").await.unwrap();
    assert_eq!(encoded.content::<Value>().unwrap(), json!({"a": 1}));
}

#[tokio::test]
async fn bytes_are_added_at_both_ends() {
    let users = &Setup::simple().await.users;
    fails_with(users.append("log", "x").await, ErrorKind::DocumentNotFound);
    fails_with(users.prepend("log", "x").await, ErrorKind::DocumentNotFound);
    users.upsert_raw("log", Raw::text("b")).await.unwrap();
    let appended = users.append("log", "c").await.unwrap();
    users.prepend("log", "a").cas(appended.cas()).await.unwrap();
    let outcome = users.append("log", "d").cas(appended.cas()).await;
    fails_with(outcome, ErrorKind::CasMismatch);
    assert_eq!(users.get("log").await.unwrap().text().unwrap(), "abc");
}

#[tokio::test]
async fn existence_is_checked_without_reading_the_document() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    let by_lookup = setup
        .server
        .fault(Fault::on(Opcode::SubdocMultiLookup).pass());
    let absent = users.exists("ada").await.unwrap();
    assert_eq!((absent.exists(), absent.cas()), (false, 0));
    let written = users.upsert("ada", &1).await.unwrap();
    let present = users.exists("ada").await.unwrap();
    assert_eq!((present.exists(), present.cas()), (true, written.cas()));
    users.remove("ada").await.unwrap();
    let removed = users.exists("ada").await.unwrap();
    assert_eq!((removed.exists(), removed.cas()), (false, 0));
    assert_eq!(by_lookup.fired(), 3);
}

#[tokio::test]
async fn collections_keep_their_documents_apart() {
    let setup = Setup::simple().await;
    setup.server.create_scope("travel", "inventory").unwrap();
    setup
        .server
        .create_collection("travel", "inventory", "hotels", 0)
        .unwrap();
    let hotels = setup
        .cluster
        .bucket("travel")
        .collection("inventory", "hotels");
    setup.users.upsert("x", &"user").await.unwrap();
    hotels.upsert("x", &"hotel").await.unwrap();
    assert!(hotels.exists("x").await.unwrap().exists());
    setup.users.remove("x").await.unwrap();
    assert!(hotels.exists("x").await.unwrap().exists());
    let found = hotels.get("x").await.unwrap();
    assert_eq!(found.content::<String>().unwrap(), "hotel");
    let error = fails_with(hotels.get("y").await, ErrorKind::DocumentNotFound);
    let text = error.to_string();
    assert!(text.starts_with("get travel.inventory.hotels: "), "{text}");
}

#[tokio::test]
async fn writes_work_without_collections_json_and_tokens() {
    use steadfast_wire::Feature;
    let server = server(1, 0).await;
    for feature in [
        Feature::Collections,
        Feature::Json,
        Feature::MutationSeqno,
        Feature::Snappy,
        Feature::SnappyEverywhere,
    ] {
        server.withhold_feature(feature, true);
    }
    let setup = Setup::new(server, Default::default()).await;
    let written = setup.users.upsert("ada", &"Ada").await.unwrap();
    assert_eq!(written.token(), None);
    let found = setup.users.get("ada").await.unwrap();
    assert_eq!(found.content::<String>().unwrap(), "Ada");
    assert!(setup.users.exists("ada").await.unwrap().exists());
    let hotels = setup
        .cluster
        .bucket("travel")
        .collection("inventory", "hotels");
    fails_with(hotels.get("x").await, ErrorKind::FeatureNotAvailable);
}
