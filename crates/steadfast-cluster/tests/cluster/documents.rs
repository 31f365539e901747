//! Documents that the cluster stores without a client.

use serde_json::{Value, json};
use steadfast_cluster::{BucketSettings, TestCluster};

async fn start() -> TestCluster {
    let bucket = BucketSettings::new("b").vbuckets(16).replicas(1);
    let cluster = TestCluster::builder().nodes(2).bucket(bucket);
    cluster.start().await.unwrap()
}

#[tokio::test]
async fn a_stored_document_is_json_in_its_collection_and_in_the_journal() {
    let cluster = start().await;
    cluster.create_scope("b", "s").unwrap();
    cluster.create_collection("b", "s", "c", 60).unwrap();
    cluster
        .put_document("b", "s.c", "k", &json!({"a": 1}))
        .unwrap();
    let found = cluster.document("b", "s.c", b"k").unwrap().unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&found.value).unwrap(),
        json!({"a": 1})
    );
    assert_eq!(found.flags, 0x0200_0000);
    assert_ne!(
        found.expiry, 0,
        "the collection limits the life of its documents"
    );
    assert!(
        cluster
            .document("b", "_default._default", b"k")
            .unwrap()
            .is_none()
    );
    let journal = cluster.journal().since(0);
    assert_eq!((journal.len(), journal[0].key()), (1, &b"k"[..]));
    assert_eq!(journal[0].spread.copies, 2, "the replica has it");
    // A second one replaces the first.
    cluster.put_document("b", "s.c", "k", &json!(2)).unwrap();
    let found = cluster.document("b", "s.c", b"k").unwrap().unwrap();
    assert_eq!(&found.value[..], b"2");
}

#[tokio::test]
async fn a_document_that_cannot_be_stored_is_an_error_with_its_key() {
    let cluster = start().await;
    for (bucket, collection, key, problem) in [
        ("nope", "_default._default", "k", "nope"),
        ("b", "s.c", "k", "there is no collection \"s.c\""),
        (
            "b",
            "_default._default",
            "",
            "cannot store the document \"\"",
        ),
        (
            "b",
            "_default._default",
            &"k".repeat(300),
            "cannot store the document \"kk",
        ),
    ] {
        let error = cluster.put_document(bucket, collection, key, &json!(1));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    let huge = json!("x".repeat(21 * 1024 * 1024));
    assert!(
        cluster
            .put_document("b", "_default._default", "k", &huge)
            .is_err()
    );
    assert_eq!(cluster.journal().applied(), 0);
}
