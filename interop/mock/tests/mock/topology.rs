//! Failover, nodes that come back, and new vbucket owners.

use crate::{started, within, write_acknowledged};

/// The mock gives the vbuckets of a failed node to others without their documents, so this
/// test checks routes and not contents.
#[tokio::test]
async fn operations_follow_the_vbuckets_to_their_new_owners() {
    let (mut mock, _cluster, documents) = started().await;
    documents.upsert("k0", &0).await.unwrap();
    for (command, value) in [("failover", 1), ("respawn", 2)] {
        mock.on_node(command, 1).await;
        for number in 0..200 {
            let key = format!("k{number}");
            write_acknowledged(&documents, &key, value).await;
            let read = documents.get(&key).await.unwrap();
            assert_eq!(read.content::<i32>().unwrap(), value);
        }
    }
}

#[tokio::test]
async fn writes_go_on_through_failover_and_return() {
    let (mut mock, _cluster, documents) = started().await;
    let writers: Vec<_> = (0..8)
        .map(|worker| {
            let documents = documents.clone();
            tokio::spawn(async move {
                let key = format!("w{worker}");
                let mut acknowledged = 0;
                for number in 1..=300 {
                    match documents.upsert(&key, &number).await {
                        Ok(_) => acknowledged = number,
                        // Cut off with its connection.
                        Err(error) => assert!(error.is_ambiguous(), "{error:#}"),
                    }
                }
                (key, acknowledged)
            })
        })
        .collect();
    for node in [1, 2] {
        mock.on_node("failover", node).await;
        mock.on_node("respawn", node).await;
    }
    for writer in writers {
        let (key, acknowledged) = within(writer).await.unwrap();
        assert_eq!(
            acknowledged, 300,
            "{key}: the last writes come after the changes"
        );
        let read = documents.get(&key).await.unwrap();
        assert_eq!(read.content::<i32>().unwrap(), 300, "{key}");
    }
}
