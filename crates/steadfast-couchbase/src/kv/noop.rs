//! Whether a node answers.

use std::sync::Arc;

use super::execute::{Instead, Subject, execute};
use super::operation::KvOperation;
use super::request::{Body, Common, KeyPlace};
use crate::error::Error;
use crate::topology::{BucketCore, Node};

/// Asks a node for nothing, over a connection that operations use, and returns
/// when it has answered.
///
/// # Errors
/// If it cannot be asked or does not answer, and the strategy does not go on.
/// Dropping the future abandons the attempt under way.
pub(crate) async fn noop(
    bucket: &Arc<BucketCore>,
    node: &Arc<Node>,
    common: &Common,
) -> Result<(), Error> {
    let body = Body {
        key: KeyPlace::Nowhere,
        ..Body::default()
    };
    let subject = Subject {
        bucket,
        collection: &bucket.collections.default_collection(),
        id: &[],
        copy: 0,
        dispensable: false,
        instead: Some(Instead::Node(node)),
    };
    execute(KvOperation::Noop, subject, body, common).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast::internal::FailFast;
    use steadfast_cluster::fault::Fault;
    use steadfast_cluster::{BucketSettings, Cluster as Server};
    use steadfast_wire::{Opcode, Status};

    use super::*;
    use crate::{Cluster, Credentials, ErrorKind};

    #[tokio::test]
    async fn every_node_is_asked_and_only_that_one() {
        let server = Server::builder()
            .nodes(3)
            .bucket(BucketSettings::new("b").vbuckets(64))
            .user("u", "p")
            .start()
            .await
            .unwrap();
        let credentials = Credentials::password("u", "p");
        let cluster = Cluster::connect(&server.connection_string(), credentials)
            .await
            .unwrap();
        let bucket = cluster.bucket("b");
        // Opens the bucket.
        let exists = bucket.default_collection();
        exists.exists("k").await.unwrap();

        let seen = server.fault(Fault::on(Opcode::Noop).pass());
        let routes = bucket.core().routes().clone().unwrap();
        let common = Common::default();
        for node in routes.nodes() {
            noop(bucket.core(), node, &common).await.unwrap();
        }
        assert_eq!(seen.fired(), 3);
        drop(seen);

        let _refuses = server.fault(Fault::on(Opcode::Noop).answer(Status::TemporaryFailure));
        let impatient = Common {
            strategy: Some(Arc::new(FailFast::new())),
            timeout: Some(Duration::from_secs(10)),
            ..Common::default()
        };
        let node = routes.nodes().next().unwrap();
        let error = noop(bucket.core(), node, &impatient).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TemporaryFailure);
        assert!(error.to_string().starts_with("noop b: "), "{error}");
        cluster.close().await;
    }
}
