//! A client against a real cluster on real sockets.

use steadfast_couchbase::ErrorKind;

use crate::fixture::*;

#[tokio::test]
async fn a_document_is_written_and_read() {
    let server = server(3, 1).await;
    let cluster = client(&server).await;
    let users = cluster.bucket("travel").default_collection();
    for user in 0..50 {
        let id = format!("u:{user}");
        users.upsert(&id, &user).await.unwrap();
        let found = users.get(&id).await.unwrap();
        assert_eq!(found.content::<u32>().unwrap(), user);
    }
    let error = fails_with(users.get("nobody").await, ErrorKind::DocumentNotFound);
    println!("{error}\n{error:#}\n{}", error.to_json());
}

#[tokio::test]
async fn a_query_finds_what_was_written() {
    let server = server(2, 1).await;
    let cluster = client(&server).await;
    let users = cluster.bucket("travel").default_collection();
    users
        .upsert("u:1", &serde_json::json!({"name": "Ada"}))
        .await
        .unwrap();
    let query = cluster.query("SELECT name FROM `travel`").readonly(true);
    let mut rows = query.await.unwrap();
    let row: Option<serde_json::Value> = rows.next().await.unwrap();
    assert_eq!(row, Some(serde_json::json!({"name": "Ada"})));
    assert_eq!(rows.next::<serde_json::Value>().await.unwrap(), None);
}
