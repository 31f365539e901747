//! A client against a real cluster on real sockets.

use steadfast_cluster::{BucketSettings, Cluster as Server};
use steadfast_couchbase::{Cluster, Credentials, ErrorKind};

#[tokio::test]
async fn a_document_is_written_and_read() {
    let server = Server::builder()
        .nodes(3)
        .bucket(BucketSettings::new("travel").replicas(1))
        .user("app", "secret")
        .start()
        .await
        .unwrap();
    let cluster = Cluster::connect(
        &server.connection_string(),
        Credentials::password("app", "secret"),
    )
    .await
    .unwrap();
    let users = cluster.bucket("travel").default_collection();
    for user in 0..50 {
        let id = format!("u:{user}");
        users.upsert(&id, &user).await.unwrap();
        let found = users.get(&id).await.unwrap();
        assert_eq!(found.content::<u32>().unwrap(), user);
    }
    let error = users.get("nobody").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DocumentNotFound);
    println!("{error}\n{error:#}\n{}", error.to_json());
    cluster.close().await;
}
