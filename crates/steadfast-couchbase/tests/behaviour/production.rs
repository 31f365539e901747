//! Promises to a service in production: reads of one's own writes, and writes whose
//! outcome is unknown.

use std::time::Duration;

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::Resolution;
use steadfast_couchbase::{Error, ErrorKind};
use steadfast_wire::Opcode;

use crate::fixture::*;

#[tokio::test]
async fn a_query_and_a_search_are_consistent_with_writes_and_not_with_the_future() {
    let (server, cluster, documents) = started(1, 0).await;
    server.create_search_index("places");
    let written = documents.upsert("k", &1).await.unwrap();
    let later = documents.upsert("k", &2).await.unwrap();
    let tokens = [written.token().unwrap(), later.token().unwrap()];
    let select = || cluster.query("SELECT 1").readonly(true);
    select().consistent_with(tokens).unwrap().await.unwrap();
    let search = || {
        let query = serde_json::json!({"match": "x"});
        cluster.search("places", &query).unwrap()
    };
    search().consistent_with(tokens).unwrap().await.unwrap();

    let mut future = tokens[1].clone();
    future.seqno += 1;
    let mut foreign = tokens[1].clone();
    foreign.vbucket_uuid ^= 1;
    for unmet in [&future, &foreign] {
        let error = select().consistent_with([unmet]).unwrap().await;
        let error = error.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::IndexFailure, "{error}");
        assert_eq!(
            error.context().http().unwrap().code,
            Some(12_015),
            "{error}"
        );
        let error = search()
            .consistent_with([unmet])
            .unwrap()
            .await
            .err()
            .unwrap();
        assert_eq!(error.context().http().unwrap().status, Some(412), "{error}");
    }
    // The last choice counts.
    let unbounded = steadfast_couchbase::ScanConsistency::NotBounded;
    let select = select().consistent_with([&future]).unwrap();
    select.consistency(unbounded).await.unwrap();

    let none: [&steadfast_couchbase::collection::MutationToken; 0] = [];
    let error = cluster
        .query("SELECT 1")
        .consistent_with(none)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let ctl = search().raw("ctl", &1).unwrap().consistent_with(tokens);
    assert_eq!(ctl.err().unwrap().kind(), ErrorKind::InvalidArgument);
    let ctl = search().consistent_with(tokens).unwrap().raw("ctl", &1);
    assert_eq!(ctl.err().unwrap().kind(), ErrorKind::InvalidArgument);
}

const SHORT: Duration = Duration::from_millis(200);

fn unknown(resolution: &Resolution, expected: &str) {
    let Resolution::Unknown { why } = resolution else {
        panic!("{resolution:?}")
    };
    assert!(why.contains(expected), "{why}");
}

#[tokio::test]
async fn an_ambiguous_write_that_left_its_mark_was_applied() {
    let (server, _cluster, documents) = started(1, 0).await;
    let before = documents.upsert("k", &0).await.unwrap();
    for fault in [
        Fault::on(Opcode::Set).delay_answer(LONG),
        Fault::on(Opcode::Set).cut_after_applying(),
    ] {
        let fault = server.fault(fault);
        let error = documents.upsert("k", &1).timeout(SHORT).await.unwrap_err();
        drop(fault);
        assert!(error.is_ambiguous(), "{error}");
        let resolved = documents
            .resolve("k", &error)
            .applied_if(|found| found.content().is_ok_and(|value: i32| value == 1))
            .previous_cas(before.cas());
        let resolved = resolved.await.unwrap();
        assert!(
            matches!(resolved, Resolution::Applied { .. }),
            "{resolved:?}"
        );
    }
}

/// An ambiguous write of 1 over 0 that the server holds back, unapplied.
async fn held(
    server: &steadfast_cluster::TestCluster,
    documents: &steadfast_couchbase::Collection,
) -> (steadfast_cluster::fault::FaultGuard, Error, u64) {
    let before = documents.upsert("k", &0).await.unwrap();
    let hold = server.fault(Fault::on(Opcode::Set).key("k").times(1).hold());
    let error = documents.upsert("k", &1).timeout(SHORT).await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    (hold, error, before.cas())
}

#[tokio::test]
async fn a_write_that_may_still_arrive_is_unknown() {
    let (server, _cluster, documents) = started(1, 0).await;
    let (hold, error, before) = held(&server, &documents).await;
    // The document is unchanged, and a plain request on the connection is answered.
    assert_eq!(documents.get("k").await.unwrap().cas(), before);
    let resolve = || documents.resolve("k", &error).previous_cas(before);
    unknown(&resolve().timeout(SHORT).await.unwrap(), "does not confirm");
    drop(hold);
    let applied = || async {
        let found = documents.get("k").await.unwrap();
        found.content::<i32>().unwrap() == 1
    };
    while !applied().await {
        tokio::task::yield_now().await;
    }
    unknown(&resolve().await.unwrap(), "was written since");
}

#[tokio::test]
async fn a_resolution_waits_for_the_write_to_finish() {
    let (server, _cluster, documents) = started(1, 0).await;
    let (hold, error, before) = held(&server, &documents).await;
    let resolve = documents
        .resolve("k", &error)
        .applied_if(|found| found.content().is_ok_and(|value: i32| value == 1))
        .previous_cas(before)
        .timeout(LONG);
    let (resolved, ()) = tokio::join!(resolve.into_future(), async { drop(hold) });
    let resolved = resolved.unwrap();
    assert!(
        matches!(resolved, Resolution::Applied { .. }),
        "{resolved:?}"
    );
}

#[tokio::test]
async fn a_write_that_the_server_finished_without_a_trace_was_not_applied() {
    let (server, _cluster, documents) = started(1, 0).await;
    let stale = documents.upsert("k", &0).await.unwrap();
    let before = documents.upsert("k", &0).await.unwrap();
    let hold = server.fault(Fault::on(Opcode::Replace).hold());
    let replace = documents.replace("k", &1).cas(stale.cas()).timeout(SHORT);
    let error = replace.await.unwrap_err();
    assert!(error.is_ambiguous(), "{error}");
    // The server finishes the request now, and refuses it: the version is stale.
    drop(hold);
    let resolve = documents.resolve("k", &error).previous_cas(before.cas());
    assert_eq!(resolve.await.unwrap(), Resolution::NotApplied);

    // Without the earlier version, an unchanged document proves nothing.
    unknown(&documents.resolve("k", &error).await.unwrap(), "not known");
    documents.remove("k").await.unwrap();
    let resolve = documents.resolve("k", &error).previous_cas(before.cas());
    unknown(&resolve.await.unwrap(), "is gone");
}

#[tokio::test]
async fn a_write_whose_connection_is_closed_is_unknown_though_nothing_changed() {
    let (server, _cluster, documents) = started(1, 0).await;
    let before = documents.upsert("k", &0).await.unwrap();
    let cut = server.fault(Fault::on(Opcode::Set).times(1).cut_before_applying());
    let error = documents.upsert("k", &1).await.unwrap_err();
    drop(cut);
    assert!(error.is_ambiguous(), "{error}");
    let resolve = documents.resolve("k", &error).previous_cas(before.cas());
    let resolved = resolve.await.unwrap();
    assert!(
        matches!(resolved, Resolution::Unknown { .. }),
        "{resolved:?}"
    );
}

#[tokio::test]
async fn only_ambiguous_errors_of_writes_to_the_collection_are_resolved() {
    let (server, cluster, documents) = started(1, 0).await;
    documents.upsert("k", &0).await.unwrap();
    let plain = documents.insert("k", &1).await.unwrap_err();
    let cut = server.fault(Fault::on(Opcode::Set).times(1).cut_after_applying());
    let ambiguous = documents.upsert("k", &1).await.unwrap_err();
    drop(cut);
    let other = cluster.bucket(BUCKET).collection("s", "c");
    for (on, error, expected) in [
        (&documents, &plain, "not ambiguous"),
        (&other, &ambiguous, "another collection"),
    ] {
        let error = on.resolve("k", error).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
