//! Not my vbucket: where an operation goes, and when (RFC 0005; D21 to D25).

use steadfast::FailFast;
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::options::VbucketRetry;
use steadfast_couchbase::{ClusterOptions, ErrorKind};
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;

#[tokio::test]
async fn not_my_vbucket_never_surfaces_and_is_named_by_the_timeout() {
    let (server, _cluster, documents) = started(2, 1).await;
    let refused = server.fault(Fault::on(Opcode::Set).answer(Status::NotMyVbucket));
    for strict in [false, true] {
        let write = documents.upsert("k", &1).timeout(ms(600));
        let error = match strict {
            false => write.await,
            true => write.retry(FailFast::new()).await,
        };
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnambiguousTimeout, "{error:#}");
        assert_eq!(reasons(&error), ["KV_NOT_MY_VBUCKET"]);
        assert!(!error.is_ambiguous());
        // 1, 10, 50, 100 ms, and what is left.
        assert!((4..=6).contains(&error.attempts()), "{error:#}");
    }
    drop(refused);
    let _refused = server.fault(Fault::on(Opcode::Set).times(3).answer(Status::NotMyVbucket));
    let strict = documents.upsert("k", &1).retry(FailFast::new());
    strict.await.unwrap();
}

#[tokio::test]
async fn the_fixed_delay_of_rfc_0005_is_an_option() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().vbucket_retry(VbucketRetry::Fixed(ms(30)));
    let (_cluster, documents) = warm_client(&server, options).await;
    let refused = Fault::on(Opcode::Get).times(3).answer(Status::NotMyVbucket);
    let _refused = server.fault(refused);
    let busy = Fault::on(Opcode::Get).answer(Status::Busy);
    let _busy = server.fault(busy);
    let outcome = documents.get("k").timeout(LONG).await;
    let error = fails_with(outcome, ErrorKind::TemporaryFailure);
    assert_eq!(delays(&error), [ms(30); 3]);
}

#[tokio::test]
async fn an_operation_that_saw_no_refusal_stays_on_the_current_map() {
    let (server, _cluster, documents) = started(2, 1).await;
    let (_, rebalance) = server.begin_rebalance_in().await.unwrap();
    let (key, now, then) = moving_key(&server);
    documents.upsert(&key, &1).await.unwrap();
    let busy = Fault::on(Opcode::Get).node(now).times(3);
    let busy = server.fault(busy.answer(Status::TemporaryFailure));
    let early = server.fault(Fault::on(Opcode::Get).node(then).pass());
    documents.get(&key).await.unwrap();
    assert_eq!((busy.fired(), early.fired()), (3, 0));
    rebalance.finish().await;
}

#[tokio::test]
async fn after_not_my_vbucket_the_operation_waits_at_the_forward_node() {
    let (server, _cluster, documents) = started(2, 1).await;
    let (_, rebalance) = server.begin_rebalance_in().await.unwrap();
    let (key, now, then) = moving_key(&server);
    documents.upsert(&key, &1).await.unwrap();
    let refused = Fault::on(Opcode::Get).node(now).times(1);
    let refused = server.fault(refused.answer(Status::NotMyVbucket));
    let again = server.fault(Fault::on(Opcode::Get).node(now).pass());
    let ahead = server.fault(Fault::on(Opcode::Get).node(then).pass());
    let get = spawn_get(&documents, &key);
    // The forward node does not have it yet, so that it says no as well: the
    // operation waits 10, 50, 100, 500 ms there, and does not go back.
    until("the forward node was asked", || ahead.fired() >= 2).await;
    tokio::time::sleep(ms(120)).await;
    assert_eq!((refused.fired(), again.fired()), (1, 0));
    assert!(ahead.fired() <= 6, "asked {} times", ahead.fired());
    rebalance.finish().await;
    get.await.unwrap().unwrap();
    assert_eq!(again.fired(), 0);
}

#[tokio::test]
async fn two_nodes_that_name_each_other_do_not_cause_a_tight_loop() {
    let (server, _cluster, documents) = started(3, 1).await;
    let leaving = server.nodes()[2];
    let _rebalance = server.begin_rebalance_out(leaving).await.unwrap();
    let (key, _, _) = moving_key(&server);
    let refused = server.fault(Fault::on(Opcode::Get).answer(Status::NotMyVbucket));
    let error = documents.get(&key).timeout(ms(600)).await.unwrap_err();
    assert_eq!(reasons(&error), ["KV_NOT_MY_VBUCKET"]);
    // One hop at once, then 10, 50, 100 and what is left.
    assert!(refused.fired() <= 7, "asked {} times", refused.fired());
}

#[tokio::test]
async fn a_moved_vbucket_is_found_at_its_new_node_without_a_wait() {
    let server = server(2, 1).await;
    let options = ClusterOptions::new().config_push(false);
    let (_cluster, documents) = warm_client(&server, options).await;
    server.rebalance_in().await.unwrap();
    // The client has heard nothing: the refusals themselves carry the config.
    let (strategy, asked) = counting();
    for number in 0..100 {
        let key = format!("k{number}");
        let write = documents.upsert(&key, &1).retry(strategy.clone());
        write.timeout(LONG).await.unwrap();
    }
    let asked = asked.load(std::sync::atomic::Ordering::Relaxed);
    // Only the connection to the new node is waited for.
    assert!(asked < 20, "{asked}");
}

#[tokio::test]
async fn a_vbucket_without_a_node_is_waited_for() {
    let server = builder(2, 0).start().await.unwrap();
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let lost = server.nodes()[1];
    let key = key_on(&server, lost);
    server.fail_over(lost).await.unwrap();
    until_timeout_names("NODE_NOT_AVAILABLE", async |time| {
        documents.get(&key).timeout(time).await
    })
    .await;
    let write = spawn_upsert(&documents, &key, &2);
    tokio::time::sleep(ms(5)).await;
    server.rebalance().await.unwrap();
    write.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_config_wakes_only_requests_whose_route_changed() {
    let server = builder(3, 1).farewell(ms(1)).start().await.unwrap();
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let nodes = server.nodes();
    let (lost, stays) = (nodes[0], nodes[1]);
    let (moved, unmoved) = (key_on(&server, lost), key_on(&server, stays));
    let locked = server.fault(Fault::on(Opcode::Get).key(&unmoved).answer(Status::Locked));
    // Each waits longer than it has: these waits are capped, and would end in
    // the timeout (D9).
    let wait = every(ms(60_000));
    let waiting = tokio::spawn({
        let (documents, key, wait) = (documents.clone(), unmoved.clone(), wait.clone());
        async move { documents.get(&key).timeout(ms(1500)).retry(wait).await }
    });
    until("the lock was met", || locked.fired() == 1).await;
    server.crash(lost).await.unwrap();
    let blocked = tokio::spawn({
        let (documents, key) = (documents.clone(), moved.clone());
        async move { documents.get(&key).timeout(LONG).retry(wait).await }
    });
    tokio::time::sleep(ms(20)).await;
    assert!(!blocked.is_finished());
    server.fail_over(lost).await.unwrap();
    blocked.await.unwrap().unwrap();
    assert!(!waiting.is_finished());
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        locked.fired(),
        1,
        "a config that changes nothing wakes nobody"
    );
    assert_eq!(reasons(&error), ["KV_LOCKED"]);
}
