//! Statements of the documents that no other test pins: `docs/conformance.md`
//! names these by their rows.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use steadfast::FailFast;
use steadfast_cluster::fault::{Fault, FaultCondition};
use steadfast_cluster::script::Script;
use steadfast_cluster::{Service, TestCluster};
use steadfast_couchbase::options::BreakerSettings;
use steadfast_couchbase::{
    Cluster, ClusterOptions, Credentials, Error, ErrorKind, ErrorMapDirected,
};
use steadfast_wire::error_map::{Attributes, ErrorDefinition, ErrorMapBackoff, RetrySpec};
use steadfast_wire::hello::FeatureSet;
use steadfast_wire::{Decoded, Feature, Frame, FrameDecoder, Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::fixture::*;

/// A status that only an error map can explain.
const ODD: Status = Status::from_code(0x0fe1);

fn odd(attributes: Attributes, retry: Option<RetrySpec>) -> ErrorDefinition {
    ErrorDefinition {
        name: "ODD".into(),
        description: "made up".into(),
        attributes,
        retry,
    }
}

/// What a client says first, as far as it waits for no answer.
async fn first_flight(options: ClusterOptions) -> Vec<Frame> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let string = format!("couchbase://{}", listener.local_addr().unwrap());
    let cluster = connect(&string, app(), options).await;
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut received = BytesMut::new();
    let mut frames = Vec::new();
    // It says no more after this, whatever the order was.
    while !frames
        .iter()
        .any(|frame: &Frame| frame.opcode() == Opcode::SaslAuth)
    {
        assert_ne!(socket.read_buf(&mut received).await.unwrap(), 0);
        frames.extend(decode(&mut received));
    }
    assert!(received.is_empty());
    cluster.close().await;
    frames
}

fn decode(received: &mut BytesMut) -> Vec<Frame> {
    let decoder = FrameDecoder::from_client();
    std::iter::from_fn(|| match decoder.decode(received).unwrap() {
        Decoded::Frame(frame) => Some(frame),
        Decoded::NeedMore(_) => None,
    })
    .collect()
}

fn opcodes(frames: &[Frame]) -> Vec<Opcode> {
    frames.iter().map(Frame::opcode).collect()
}

#[tokio::test]
async fn hello_with_xerror_and_the_error_map_go_before_authentication_in_one_flight() {
    let flight = first_flight(ClusterOptions::new()).await;
    assert_eq!(
        opcodes(&flight),
        [
            Opcode::Hello,
            Opcode::GetErrorMap,
            Opcode::SaslListMechs,
            Opcode::SaslAuth
        ]
    );
    let asked = FeatureSet::decode(flight[0].value()).unwrap();
    assert!(asked.contains(Feature::Xerror));
    assert_eq!(flight[1].opcode().code(), 0xfe);
    // The greatest version that it can read, as two bytes.
    assert_eq!(flight[1].value(), [0, 2]);
}

/// Stands before a node and notes what each connection says, in order.
async fn eavesdrop(server: &TestCluster) -> (String, mpsc::UnboundedReceiver<Vec<Opcode>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let string = format!("couchbase://{}", listener.local_addr().unwrap());
    let node = server.addresses(Service::KeyValue)[0].clone();
    let (heard, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass_on(client, node.clone(), heard.clone()));
        }
    });
    (string, told)
}

/// Tells after each flight what was said so far.
async fn pass_on(client: TcpStream, node: String, heard: mpsc::UnboundedSender<Vec<Opcode>>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_node, mut to_node) = TcpStream::connect(node).await.unwrap().into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_node, &mut to_client).await });
    let (mut received, mut said) = (BytesMut::new(), Vec::new());
    loop {
        let before = received.len();
        match from_client.read_buf(&mut received).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let new = received[before..].to_vec();
        said.extend(opcodes(&decode(&mut received)));
        let _ = heard.send(said.clone());
        if to_node.write_all(&new).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn hello_waits_for_authentication_where_that_is_set() {
    assert_eq!(
        opcodes(&first_flight(ClusterOptions::new().hello_after_authentication(true)).await),
        [Opcode::SaslListMechs, Opcode::SaslAuth]
    );
    let server = server(1, 1).await;
    for after in [false, true] {
        let (string, mut told) = eavesdrop(&server).await;
        let options = ClusterOptions::new().hello_after_authentication(after);
        let cluster = connect(&string, app(), options).await;
        let documents = cluster.bucket(BUCKET).default_collection();
        documents.upsert("k", &1).timeout(LONG).await.unwrap();
        let said = loop {
            let said = told.recv().await.unwrap();
            if said.contains(&Opcode::SelectBucket) {
                break said;
            }
        };
        let at = |opcode| said.iter().position(|it| *it == opcode).unwrap();
        assert_eq!(at(Opcode::Hello) > at(Opcode::SaslStep), after, "{said:?}");
        assert!(at(Opcode::GetErrorMap) > at(Opcode::Hello), "{said:?}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_grant_xerror_has_no_error_map() {
    let server = server(1, 1).await;
    server
        .error_map()
        .set(ODD.code(), odd(Attributes::RETRY_NOW, None));
    for granted in [true, false] {
        server.withhold_feature(Feature::Xerror, !granted);
        let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
        let refused = server.fault(Fault::on(Opcode::Set).times(2).answer(ODD));
        let written = documents.upsert("k", &1).await;
        assert_eq!(written.is_ok(), granted);
        assert_eq!(refused.fired(), if granted { 2 } else { 1 });
    }
}

#[tokio::test]
async fn after_a_map_that_cannot_be_read_the_connection_works_without_xerror() {
    let server = server(1, 1).await;
    let reason_of_a_lock = async || {
        let (cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
        documents.upsert("k", &1).await.unwrap();
        let lock = documents.get_and_lock("k", Duration::from_secs(15)).await;
        let write = documents.upsert("k", &2).retry(FailFast::new()).await;
        let reasons = reasons(&write.unwrap_err());
        documents.unlock("k", lock.unwrap().cas()).await.unwrap();
        cluster.close().await;
        reasons
    };
    assert_eq!(reason_of_a_lock().await, ["KV_LOCKED"]);
    server.error_map().set_raw(Some(b"{".to_vec()));
    // A server that does not know of XERROR says it in the old way.
    assert_eq!(reason_of_a_lock().await, ["KV_TEMPORARY_FAILURE"]);
}

#[tokio::test]
async fn each_connection_goes_by_the_map_of_its_own_node() {
    let (server, _cluster, documents) = started(2, 1).await;
    let nodes = server.nodes();
    let (old, new) = (key_on(&server, nodes[0]), key_on(&server, nodes[1]));
    // The second node is upgraded, and has a newer map from then on.
    server
        .error_map()
        .set(ODD.code(), odd(Attributes::RETRY_NOW, None));
    server.crash(nodes[1]).await.unwrap();
    restart(&server, nodes[1]).await;
    documents.upsert(&new, &1).timeout(LONG).await.unwrap();
    let refused = server.fault(Fault::on(Opcode::Get).key(&new).times(2).answer(ODD));
    documents.get(&new).await.unwrap();
    assert_eq!(refused.fired(), 2);
    let refused = server.fault(Fault::on(Opcode::Get).key(&old).times(2).answer(ODD));
    fails_with(documents.get(&old).await, ErrorKind::Couchbase);
    assert_eq!(refused.fired(), 1);
}

#[tokio::test]
async fn retry_intervals_of_the_map_are_for_the_strategy_that_obeys_them_alone() {
    let server = server(1, 1).await;
    let spec = RetrySpec {
        strategy: ErrorMapBackoff::Constant,
        interval: ms(7),
        after: ms(5),
        max_duration: None,
        ceil: None,
    };
    server
        .error_map()
        .set(ODD.code(), odd(Attributes::AUTO_RETRY, Some(spec)));
    let (_cluster, documents) = warm_client(&server, ClusterOptions::new()).await;
    let waited = async |directed: bool| {
        // On the fourth try it has another answer, which is conclusive.
        let _odd = server.fault(Fault::on(Opcode::Set).times(3).answer(ODD));
        let _too_big = server.fault(Fault::on(Opcode::Set).answer(Status::TooBig));
        let write = documents.upsert("k", &1).timeout(LONG);
        let error = match directed {
            true => write.retry(ErrorMapDirected::default()).await,
            false => write.await,
        };
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueTooLarge, "{error:#}");
        delays(&error)
    };
    assert_eq!(waited(false).await, [ms(1), ms(2), ms(4)]);
    assert_eq!(waited(true).await, [ms(5), ms(7), ms(7)]);
}

#[tokio::test]
async fn any_other_problem_with_sasl_is_no_authentication_error() {
    let server = server(1, 1).await;
    for opcode in [Opcode::SaslAuth, Opcode::SaslStep] {
        for status in [
            Status::KeyExists,
            Status::AccessError,
            Status::InternalError,
        ] {
            let odd = server.fault(Fault::on(opcode).answer(status));
            let cluster = client(&server).await;
            let documents = cluster.bucket(BUCKET).default_collection();
            let write = spawn_upsert(&documents, "k", &1);
            until("it is met", || odd.fired() >= 2).await;
            let error = until_timeout_names("NODE_NOT_AVAILABLE", async |time| {
                documents.get("k").timeout(time).await
            })
            .await;
            assert_eq!(reasons(&error), ["NODE_NOT_AVAILABLE"]);
            drop(odd);
            // It waited for that to pass, under the default strategy.
            write.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn accepted_credentials_clear_earlier_rejections_before_the_bucket_opens() {
    let server = server(1, 1).await;
    let wrong = Credentials::password("app", "wrong");
    let string = server.connection_string();
    let cluster = Cluster::connect(&string, wrong).await.unwrap();
    let documents = cluster.bucket(BUCKET).default_collection();
    let outcome = documents.get("k").timeout(LONG).await;
    fails_with(outcome, ErrorKind::AuthenticationFailure);
    // The user is let in from now on, but the bucket is not ready.
    let _not_ready = server.fault(Fault::on(Opcode::SelectBucket).answer(Status::KeyNotFound));
    cluster.set_credentials(app()).unwrap();
    let start = Instant::now();
    while let Err(error) = documents.get("k").timeout(ms(50)).await {
        // At first it may not be ready yet, then it is missing.
        let names = reasons(&error);
        if names == ["NODE_NOT_AVAILABLE"] || names.contains(&"BUCKET_ACCESS_ERROR") {
            break;
        }
        assert!(start.elapsed() < LONG, "{error:#}");
        tokio::time::sleep(ms(1)).await;
    }
}

#[tokio::test]
async fn an_open_breaker_is_a_retry_reason() {
    let server = server(1, 1).await;
    let options = ClusterOptions::new().circuit_breaker(BreakerSettings {
        volume_threshold: 3,
        sleep_window: LONG,
        ..BreakerSettings::default()
    });
    let (_cluster, documents) = warm_client(&server, options).await;
    let cut = server.fault(Fault::on(Opcode::Get).cut_before_applying());
    let start = Instant::now();
    loop {
        let strict = documents.get("k").retry(FailFast::new());
        let error = strict.await.unwrap_err();
        if reasons(&error) == ["CIRCUIT_BREAKER_OPEN"] {
            break;
        }
        assert!(start.elapsed() < LONG, "{error:#}");
        tokio::time::sleep(ms(1)).await;
    }
    let sent = cut.fired();
    assert!((1..=3).contains(&sent), "{sent}");
    // For every operation on the node it is a reason to wait, by the strategy.
    until_timeout_names("CIRCUIT_BREAKER_OPEN", async |time| {
        documents.upsert("k", &1).timeout(time).await
    })
    .await;
    assert_eq!(cut.fired(), sent, "nothing was sent");
}

/// A canary is one attempt that shows whether the endpoint is well again. One that
/// cannot be sent shows nothing, and would keep all others back in vain.
#[tokio::test]
async fn a_breaker_is_not_asked_for_an_attempt_that_has_no_connection() {
    let server = server(1, 1).await;
    let options = best_effort().circuit_breaker(BreakerSettings {
        volume_threshold: 3,
        sleep_window: ms(200),
        canary_timeout: LONG,
        ..BreakerSettings::default()
    });
    let (_cluster, documents) = warm_client(&server, options).await;
    let node = server.nodes()[0];
    let _held = server.fault(Fault::on(Opcode::Get).hold());
    until_timeout_names("CIRCUIT_BREAKER_OPEN", async |time| {
        documents.get("k").timeout(time).await
    })
    .await;
    server.crash(node).await.unwrap();
    let start = Instant::now();
    loop {
        let get = documents.get("k").timeout(ms(50));
        let error = get.await.unwrap_err();
        if reasons(&error) == ["SOCKET_NOT_AVAILABLE"] && error.attempts() > 2 {
            break;
        }
        assert!(start.elapsed() < LONG / 2, "{error:#}");
    }
}

/// Whether an operation whose connection is cut under way is made again.
async fn is_made_again<T>(
    server: &TestCluster,
    when: FaultCondition,
    operation: impl IntoFuture<Output = Result<T, Error>>,
) -> bool {
    let cut = server.fault(when.times(1).cut_before_applying());
    let outcome = operation.await;
    assert_eq!(cut.fired(), 1);
    let Err(error) = outcome else { return true };
    assert_eq!(error.kind(), ErrorKind::RequestCanceled, "{error:#}");
    assert!(error.is_ambiguous());
    false
}

#[tokio::test]
async fn services_are_asked_again_after_a_cut_if_they_only_read() {
    let server = server(1, 1).await;
    let cluster = client(&server).await;
    let on = Fault::on_service;
    for readonly in [true, false] {
        let query = cluster.query("SELECT 1").readonly(readonly);
        assert_eq!(
            is_made_again(&server, on(Service::Query), query).await,
            readonly
        );
        let analytics = cluster.analytics("SELECT VALUE 1").readonly(readonly);
        let made_again = is_made_again(&server, on(Service::Analytics), analytics).await;
        assert_eq!(made_again, readonly);
    }
    let everything = serde_json::json!({"match_all": {}});
    server.create_search_index("i");
    let search = cluster.search("i", &everything).unwrap();
    assert!(is_made_again(&server, on(Service::Search), search).await);
    let rows = Script::on(Service::Views).answer(200, r#"{"total_rows":0,"rows":[]}"#);
    let _rows = server.script(rows);
    let view = cluster.bucket(BUCKET).view("d", "v");
    assert!(is_made_again(&server, on(Service::Views), view).await);
}
