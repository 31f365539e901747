//! A request's view of the cluster, for statements.

use std::sync::Arc;
use std::time::Duration;

use steadfast_sqlpp::{
    BucketNames, DocumentStore, NodeRun, PreparedPlans, Random, Session, Transactions,
};
use tokio_util::sync::CancellationToken;

use super::documents::Documents;
use crate::http::HttpSession;
use crate::http::consistency::has_reached;
use crate::topology::NodeId;
use crate::users::User;

/// A connection and the user of a request on it.
#[derive(Debug)]
pub(super) struct QuerySession {
    http: HttpSession,
    user: Arc<User>,
}

impl QuerySession {
    pub(super) fn shared(http: &HttpSession, user: &Arc<User>) -> Arc<dyn Session> {
        Arc::new(Self {
            http: http.clone(),
            user: Arc::clone(user),
        })
    }
}

impl Session for QuerySession {
    fn user(&self) -> &str {
        &self.user.name
    }

    fn may_open(&self, bucket: &str) -> bool {
        self.user.rights.may_open(bucket)
    }

    fn may_write(&self) -> bool {
        !self.user.rights.read_only
    }

    fn node_run(&self) -> Arc<dyn NodeRun> {
        Arc::new(RunOfNode {
            node: self.http.node.id,
            running: self.http.node.running(),
        })
    }

    fn cluster_uuid(&self) -> &str {
        &self.http.shared.uuid
    }

    fn now(&self) -> Duration {
        self.http.shared.clock.now().elapsed_since_epoch()
    }

    fn random(&self) -> Random {
        steadfast_os::random::u128
    }

    fn plans(&self) -> &PreparedPlans {
        &self.http.shared.plans
    }

    fn transactions(&self) -> &Transactions {
        &self.http.shared.transactions
    }

    fn has_scope(&self, bucket: &str, scope: &str) -> bool {
        let bucket = self.http.shared.bucket(bucket);
        bucket.is_some_and(|bucket| bucket.manifest().scope_id(scope).is_ok())
    }

    fn collection(&self, bucket: &str, scope: &str, name: &str) -> Option<Arc<dyn DocumentStore>> {
        let bucket = self.http.shared.bucket(bucket)?;
        let found = bucket.manifest().collection_id(&format!("{scope}.{name}"));
        Some(Documents::shared(&self.http, bucket, found.ok()?))
    }

    fn collection_of_id(&self, bucket: &str, id: u32) -> Option<Arc<dyn DocumentStore>> {
        let bucket = self.http.shared.bucket(bucket)?;
        Some(Documents::shared(&self.http, bucket, id))
    }

    fn buckets(&self) -> Vec<BucketNames> {
        let buckets = self.http.shared.buckets().into_iter();
        let names = buckets.map(|bucket| BucketNames {
            name: bucket.name.to_string(),
            collections: bucket
                .manifest()
                .all()
                .map(|(id, scope, name)| (id, scope.to_owned(), name.to_owned()))
                .collect(),
            indexes: Arc::clone(&bucket.indexes),
        });
        names.collect()
    }

    fn has_reached(&self, bucket: &str, vbucket: u16, uuid: u64, seqno: u64) -> bool {
        let bucket = self.http.shared.bucket(bucket);
        bucket.is_some_and(|bucket| has_reached(&bucket, vbucket, uuid, seqno))
    }
}

#[derive(Debug)]
struct RunOfNode {
    node: NodeId,
    running: CancellationToken,
}

impl NodeRun for RunOfNode {
    fn node(&self) -> u32 {
        self.node.index() as u32
    }

    fn has_ended(&self) -> bool {
        self.running.is_cancelled()
    }
}
