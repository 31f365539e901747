//! Responses that invalidate their connection: their neighbours are not harmed.

use std::collections::BTreeSet;
use std::sync::Mutex;

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::ErrorKind;
use steadfast_wire::{Opcode, Status};

use crate::fixture::*;
use crate::scripted::{Reply, Scripted, frame_of};

/// The statuses that invalidate a connection.
const INVALIDATE: [Status; 4] = [
    Status::InternalError,
    Status::AuthStale,
    Status::NotInitialized,
    Status::NoBucket,
];

#[tokio::test]
async fn neighbours_of_an_invalidating_response_get_their_own_responses() {
    for status in INVALIDATE {
        let (server, _cluster, documents) = started(1, 1).await;
        let held = server.fault(Fault::on(Opcode::Set).key_prefix("held").hold());
        let writes: Vec<_> = (0..20)
            .map(|number| spawn_upsert(&documents, &format!("held{number}"), &number))
            .collect();
        until("all are in flight", || held.fired() == 20).await;
        let invalid = Fault::on(Opcode::Get).key("invalid").times(1);
        let _invalid = server.fault(invalid.answer(status));
        documents.get("invalid").timeout(LONG).await.unwrap_err();
        // New operations do not wait until the old connection is drained.
        documents.upsert("k", &1).timeout(LONG).await.unwrap();
        let connections: BTreeSet<_> = server
            .journal()
            .since(0)
            .iter()
            .map(|it| it.connection)
            .collect();
        assert!(connections.len() > 1, "{status}: a new connection");
        assert!(writes.iter().all(|write| !write.is_finished()));
        drop(held);
        for write in writes {
            write.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn many_invalidating_responses_make_no_write_ambiguous_and_do_not_slow_dials_down() {
    let (server, _cluster, documents) = started(1, 1).await;
    let broken = Fault::on(Opcode::Get).key("invalid").times(11);
    let broken = server.fault(broken.answer(Status::InternalError));
    let writer = |number: u32| {
        let documents = documents.clone();
        tokio::spawn(async move {
            for round in 0..50 {
                let key = format!("w{number}");
                documents.upsert(&key, &round).timeout(LONG).await?;
            }
            Ok::<_, steadfast_couchbase::Error>(())
        })
    };
    let writers: Vec<_> = (0..8).map(writer).collect();
    for _ in 0..11 {
        let error = documents.get("invalid").timeout(LONG).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InternalServerFailure, "{error:#}");
    }
    assert_eq!(broken.fired(), 11);
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_broken_stream_is_closed_at_once() {
    // The first SET gets no response; a GET gets one with another opaque.
    let held = Mutex::new(false);
    let server = Scripted::start(move |frame| match frame.opcode() {
        Opcode::Set if !std::mem::replace(&mut *held.lock().unwrap(), true) => {
            Reply::Raw(Vec::new())
        }
        Opcode::Get if frame.key().ends_with(b"broken") => {
            let mut answer = frame_of(frame, Status::Success, b"1");
            answer[12] ^= 0x55;
            Reply::Raw(answer)
        }
        _ => Reply::Usual,
    })
    .await;
    let (_cluster, documents) = server.opened().await;
    documents.get("k").timeout(LONG).await.unwrap();
    let write = spawn_upsert(&documents, "held", &1);
    let broken = documents
        .get("broken")
        .timeout(LONG)
        .retry(steadfast::FailFast::new());
    let error = broken.await.unwrap_err();
    assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"]);
    let error = write.await.unwrap().unwrap_err();
    assert!(error.is_ambiguous(), "{error:#}");
}
