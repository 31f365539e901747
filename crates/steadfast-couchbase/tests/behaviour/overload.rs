//! The option `fleet`: one node of three is overloaded, and the client sheds operations on
//! that node and no others (D41, D53).

use std::time::Duration;

use steadfast::strategy::Cause;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::{NodeId, Service, TestCluster};
use steadfast_couchbase::{Cluster, ClusterOptions, Collection, Error, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

/// The timeout of operations. On a busy machine a healthy node needs some of it.
const TIMEOUT: Duration = Duration::from_millis(250);

async fn fleet_client(server: &TestCluster) -> (Cluster, Collection) {
    let options = ClusterOptions::new().fleet(true).kv_timeout(TIMEOUT);
    warm_client(server, options).await
}

/// Reads documents of a node, 40 at a time, until the client sheds one unsent.
async fn until_shed(server: &TestCluster, documents: &Collection, node: NodeId) -> Error {
    let keys: Vec<_> = keys_on(server, node).take(40).collect();
    for _ in 0..20 {
        let reads = keys.iter().map(|key| documents.get(key).into_future());
        let outcomes = futures(reads.collect()).await;
        let mut errors = outcomes.into_iter().filter_map(Result::err);
        // A retry can be shed too.
        let is_unsent = |error: &Error| error.is_shed() && error.attempts() == 0;
        if let Some(shed) = errors.find(is_unsent) {
            return shed;
        }
    }
    panic!("the client never sheds");
}

/// Reads documents of all other nodes. All of them must be found.
async fn others_are_served(server: &TestCluster, documents: &Collection, overloaded: NodeId) {
    for node in server.nodes().into_iter().filter(|it| *it != overloaded) {
        for key in keys_on(server, node).take(50) {
            // Only a healthy node's own slowness could fail it.
            documents.upsert(&key, &1).timeout(LONG).await.unwrap();
        }
    }
}

fn says_when(shed: &Error, timeout: Duration) {
    assert_eq!(shed.kind(), ErrorKind::TemporaryFailure, "{shed:#}");
    assert_eq!(shed.attempts(), 0, "{shed:#}");
    assert!(!shed.is_ambiguous() && !shed.is_timeout(), "{shed:#}");
    let later = shed.try_again_in().unwrap();
    assert!(later >= timeout / 2 && later <= timeout * 2, "{later:?}");
    let text = shed.to_string();
    assert!(text.contains("sheds load"), "{text}");
    assert!(text.contains("nothing was sent; try again in"), "{text}");
}

#[tokio::test]
async fn a_node_that_does_not_respond_in_time_is_spared_and_the_others_are_served() {
    let server = server(3, 0).await;
    let (_cluster, documents) = fleet_client(&server).await;
    let overloaded = server.nodes()[1];
    let held = server.fault(Fault::on(Opcode::Get).node(overloaded).hold());
    let shed = until_shed(&server, &documents, overloaded).await;
    says_when(&shed, TIMEOUT);
    others_are_served(&server, &documents, overloaded).await;

    // While it brakes, far fewer reads reach the node than are made.
    let (before, mut made) = (held.fired(), 0);
    let keys: Vec<_> = keys_on(&server, overloaded).take(40).collect();
    let mut shed = 0;
    for _ in 0..10 {
        let reads = keys.iter().map(|key| documents.get(key).into_future());
        for outcome in futures(reads.collect()).await {
            made += 1;
            shed += u64::from(outcome.is_err_and(|error| error.is_shed()));
        }
    }
    let sent = held.fired() - before;
    assert!(sent <= made - shed, "{sent} of {made} sent, {shed} shed");
    assert!(sent * 2 < made, "{sent} of {made} sent");

    // The node is well again: soon all is admitted.
    drop(held);
    let key = &keys[0];
    let mut in_a_row = 0;
    let start = std::time::Instant::now();
    while in_a_row < 100 {
        assert!(start.elapsed() < LONG, "it still sheds");
        match documents.upsert(key, &1).timeout(LONG).await {
            Ok(_) => in_a_row += 1,
            Err(error) => {
                assert!(error.is_shed(), "{error:#}");
                in_a_row = 0;
                tokio::time::sleep(ms(1)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_node_that_is_busy_is_spared_and_the_others_are_served() {
    let server = server(3, 0).await;
    let (_cluster, documents) = fleet_client(&server).await;
    let overloaded = server.nodes()[2];
    let busy = Fault::on(Opcode::Get).node(overloaded);
    let busy = server.fault(busy.answer(Status::TemporaryFailure));
    let shed = until_shed(&server, &documents, overloaded).await;
    // No timeout has shown how long it is: a second is assumed.
    says_when(&shed, Duration::from_secs(1));
    others_are_served(&server, &documents, overloaded).await;
    drop(busy);
}

#[tokio::test]
async fn earned_retries_bound_those_of_a_client() {
    let server = server(3, 0).await;
    let (_cluster, documents) = fleet_client(&server).await;
    let locked = server.fault(Fault::on(Opcode::Get).answer(Status::Locked));
    let (mut refused, mut made) = (0, 0);
    for node in server.nodes() {
        for key in keys_on(&server, node).take(30) {
            made += 1;
            let error = documents.get(&key).await.unwrap_err();
            let report = error.context().report().unwrap();
            let cause = report.refusal().map(|refusal| refusal.cause());
            refused += u64::from(cause == Some(Cause::BudgetEmpty));
        }
    }
    // Best effort alone makes eight retries in 250 ms. Each node's purse pays for a few.
    let retries = locked.fired() - made;
    assert!(retries <= 100, "{retries} retries of {made} reads");
    assert!(refused >= made - 30, "{refused} of {made} were refused");
}

#[tokio::test]
async fn waiting_for_a_connection_costs_nothing() {
    let server = server(1, 0).await;
    let (_cluster, documents) = fleet_client(&server).await;
    let node = server.nodes()[0];
    server.crash(node).await.unwrap();
    let keys: Vec<_> = keys_on(&server, node).take(100).collect();
    let reads = keys
        .iter()
        .map(|key| spawn_get(&documents, key))
        .collect::<Vec<_>>();
    restart(&server, node).await;
    for read in reads {
        // It waited until the node was back. Most of the documents do not exist.
        if let Err(error) = read.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::DocumentNotFound, "{error:#}");
        }
    }
}

/// A request on a full connection is shed before it waits in line, or waits until its
/// deadline.
#[tokio::test]
async fn a_full_connection_to_an_overloaded_node_sheds_or_makes_wait() {
    let server = server(1, 0).await;
    let options = ClusterOptions::new().fleet(true).kv_timeout(TIMEOUT);
    let (_cluster, documents) = warm_client(&server, options.max_in_flight(8)).await;
    let node = server.nodes()[0];
    let held = server.fault(Fault::on(Opcode::Get).hold());
    says_when(&until_shed(&server, &documents, node).await, TIMEOUT);
    let keys: Vec<_> = keys_on(&server, node).take(40).collect();
    let (mut shed, mut waited) = (0, 0);
    for _ in 0..20 {
        let reads = keys.iter().map(|key| documents.get(key).into_future());
        for outcome in futures(reads.collect()).await {
            let error = outcome.unwrap_err();
            if error.is_shed() {
                // Reads that waited in line had less than the timeout for their attempt.
                assert!(error.try_again_in().is_some(), "{error:#}");
                shed += 1;
            } else {
                // While the brake sheds, it refuses retries as well.
                let is_refused = error.try_again_in().is_some();
                let is_late = error.kind() == ErrorKind::UnambiguousTimeout;
                assert!(is_late || is_refused, "{error:#}");
                assert!(!error.is_ambiguous(), "{error:#}");
                waited += u32::from(reasons(&error).contains(&"KV_CONNECTION_FULL"));
            }
        }
        if shed > 0 && waited > 0 {
            break;
        }
    }
    assert!(shed > 0 && waited > 0, "{shed} shed, {waited} waited");
    drop(held);
    let start = std::time::Instant::now();
    while let Err(error) = documents.upsert(&keys[0], &1).timeout(LONG).await {
        let is_refused = error.try_again_in().is_some();
        assert!(is_refused && start.elapsed() < LONG, "{error:#}");
        tokio::time::sleep(ms(1)).await;
    }
}

#[tokio::test]
async fn a_query_node_that_does_not_respond_in_time_is_spared() {
    /// Healthy nodes need some of it on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(1);
    let server = server(3, 0).await;
    let options = ClusterOptions::new().fleet(true);
    let (cluster, _) = warm_client(&server, options).await;
    let held = Fault::on_service(Service::Query).node(server.nodes()[0]);
    let held = server.fault(held.hold());
    let queries = async |timeout: Duration| {
        let query = |_| cluster.query("SELECT 1").readonly(true).timeout(timeout);
        let queries = (0..12).map(|number| query(number).into_future());
        let outcomes = futures(queries.collect()).await;
        let errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
        errors
    };
    let mut shed = None;
    for _ in 0..20 {
        shed = queries(PATIENCE).await.into_iter().find(Error::is_shed);
        if shed.is_some() {
            break;
        }
    }
    says_when(&shed.expect("the client sheds"), PATIENCE);
    // The nodes take turns: at most one of three queries is shed, and the others succeed.
    drop(held);
    let errors = queries(LONG).await;
    assert!(errors.len() <= 4, "{} of 12 failed", errors.len());
    for error in errors {
        assert!(error.is_shed(), "{error:#}");
    }
}
