//! The query service, over real sockets.

use crate::support::http::Call;
use crate::support::statements::{self, query as ask, statement as run};
use crate::support::{BUCKET, Client, cluster, key_on};
use serde_json::json;
use steadfast_cluster::script::{PlanLoss, Script};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{Service, TestCluster};
use steadfast_wire::Opcode;

/// Four airlines in two countries, one of them without a fleet.
async fn with_airlines() -> TestCluster {
    let cluster = cluster(1, 0).await;
    for (key, value) in [
        ("a1", r#"{"name": "Ada", "country": "FR", "fleet": 3}"#),
        ("a2", r#"{"name": "bob", "country": "DE", "fleet": 10}"#),
        (
            "a3",
            r#"{"name": "Cy_", "country": "DE", "fleet": 5, "tags": ["x", "y"]}"#,
        ),
        (
            "a4",
            r#"{"name": "Dee", "country": "DE", "address": {"city": "Ulm"}}"#,
        ),
    ] {
        Client::for_key(&cluster, key).await.set(key, value).await;
    }
    cluster
}

/// Two documents, written as a client would.
async fn with_documents() -> TestCluster {
    let cluster = cluster(2, 1).await;
    for (key, value) in [("k1", r#"{"n":1,"tags":["x"]}"#), ("k2", r#"{"n":2}"#)] {
        Client::for_key(&cluster, key).await.set(key, value).await;
    }
    cluster
}

#[tokio::test]
async fn parameters_are_echoed_in_a_complete_response() {
    let cluster = cluster(1, 0).await;
    let answer = ask(
        &cluster,
        json!({"statement": "SELECT $1 AS x, $name AS n, 1=1 AS t", "args": [[1, "ü"]],
               "$name": {"a": null}, "client_context_id": "c-1"}),
    )
    .await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json"));
    let json = answer.json();
    assert_eq!(
        json["results"],
        json!([{"x": [1, "ü"], "n": {"a": null}, "t": true}])
    );
    assert_eq!(json["clientContextID"], "c-1");
    assert_eq!(json["status"], "success");
    assert_eq!(
        json["signature"],
        json!({"x": "json", "n": "json", "t": "json"})
    );
    assert_eq!(json["metrics"]["resultCount"], 1);
    assert!(json["requestID"].as_str().unwrap().len() == 36);
    assert!(
        json["metrics"]["elapsedTime"]
            .as_str()
            .unwrap()
            .ends_with("ms")
    );
    assert_eq!(
        run(&cluster, "SELECT RAW 'a'").await.results(),
        json!(["a"])
    );
}

#[tokio::test]
async fn forms_and_get_requests_are_accepted() {
    let cluster = cluster(1, 0).await;
    let form = Call::new("POST", "/query/service").form("statement=SELECT+RAW+%241&args=%5B7%5D");
    assert_eq!(
        form.send(&cluster, Service::Query).await.results(),
        json!([7])
    );
    let get = Call::new(
        "GET",
        "/query/service?statement=SELECT%20RAW%20%24a&%24a=%22x%22",
    );
    assert_eq!(
        get.send(&cluster, Service::Query).await.results(),
        json!(["x"])
    );
}

#[tokio::test]
async fn writes_go_through_the_store_and_the_journal_sees_them() {
    let cluster = cluster(2, 1).await;
    let inserted = run(
        &cluster,
        "INSERT INTO b (KEY, VALUE) VALUES ('a', {'n': 1}), VALUES ('b', {'n': 2}) RETURNING META().id, n",
    )
    .await;
    assert_eq!(
        inserted.results(),
        json!([{"id": "a", "n": 1}, {"id": "b", "n": 2}])
    );
    let again = run(&cluster, "INSERT INTO b VALUES ('a', 1)").await;
    assert_eq!(again.code(), 12009);
    assert_eq!(again.json()["errors"][0]["reason"]["code"], 17012);
    assert!(again.json()["metrics"]["mutationCount"].is_null());
    assert_eq!(
        run(&cluster, "UPSERT INTO b VALUES ('a', 2)").await.status,
        200
    );
    let deleted = run(
        &cluster,
        "DELETE FROM b USE KEYS ['a', 'none'] RETURNING META().id",
    )
    .await;
    assert_eq!(deleted.results(), json!([{"id": "a"}]));
    let entries = cluster.journal().since(0);
    let seen: Vec<(Opcode, &[u8])> = entries
        .iter()
        .map(|entry| (entry.opcode, entry.key()))
        .collect();
    let wanted: [(Opcode, &[u8]); 4] = [
        (Opcode::Add, b"a"),
        (Opcode::Add, b"b"),
        (Opcode::Set, b"a"),
        (Opcode::Delete, b"a"),
    ];
    assert_eq!(seen, wanted);
    let mut client = Client::for_key(&cluster, "b").await;
    assert_eq!(client.get("b").await.value()[..], *br#"{"n":2}"#);
}

#[tokio::test]
async fn statements_have_the_rows_the_effects_and_the_errors_of_the_real_service() {
    let cluster = with_airlines().await;
    statements::run(&cluster, include_str!("statements/rows.sql")).await;
    statements::run(&cluster, include_str!("statements/errors.sql")).await;
    let applied = cluster.journal().applied();
    assert_eq!(applied, 4, "an invalid statement writes nothing");
    cluster.create_scope(BUCKET, "s").unwrap();
    cluster.create_collection(BUCKET, "s", "c", 0).unwrap();
    statements::run(&cluster, include_str!("statements/indexes.sql")).await;
    statements::run(&cluster, include_str!("statements/writes.sql")).await;
    // With its collection, an index goes.
    cluster.drop_collection(BUCKET, "s", "c").unwrap();
    let left = run(&cluster, "SELECT RAW name FROM system:indexes").await;
    assert_eq!(left.results(), json!(["i"]));
}

#[tokio::test]
async fn a_request_that_is_not_one_is_an_error() {
    let cluster = cluster(1, 0).await;
    assert_eq!(ask(&cluster, json!([1])).await.code(), 1070);
    let broken = Call::new("POST", "/query/service").body("{\"statement\":");
    assert_eq!(broken.send(&cluster, Service::Query).await.code(), 1070);
    for (method, path, status) in [("PUT", "/query/service", 405), ("GET", "/nowhere", 404)] {
        let refused = Call::new(method, path).send(&cluster, Service::Query).await;
        assert_eq!(refused.status, status);
    }
}

#[tokio::test]
async fn auto_execute_prepares_and_executes_in_one_request() {
    let cluster = cluster(1, 0).await;
    let body = json!({"statement": "PREPARE SELECT RAW $1", "auto_execute": true, "args": ["x"]});
    let answer = ask(&cluster, body).await;
    assert_eq!(answer.results(), json!(["x"]));
    let name = answer.json()["prepared"].as_str().unwrap().to_owned();
    let again = ask(&cluster, json!({"prepared": name, "args": ["y"]})).await;
    assert_eq!(again.results(), json!(["y"]));
}

#[tokio::test]
async fn users_without_the_right_are_rejected() {
    let cluster = crate::support::builder(1, 0)
        .user_with_rights("reader", "r", Rights::buckets([BUCKET]).read_only())
        .user_with_rights("other", "o", Rights::buckets(["other"]))
        .start()
        .await
        .unwrap();
    let ask = async |user, statement: &str| {
        let call = Call::new("POST", "/query/service").json(&json!({"statement": statement}));
        let answer = call.by(user).send(&cluster, Service::Query).await;
        (answer.status, answer.json()["errors"][0]["code"].as_u64())
    };
    assert_eq!(ask(None, "SELECT 1").await, (401, Some(10000)));
    assert_eq!(
        ask(Some(("app", "wrong")), "SELECT 1").await,
        (401, Some(10000))
    );
    let other = Some(("other", "o"));
    assert_eq!(ask(other, "SELECT * FROM b").await, (401, Some(13014)));
    let reader = Some(("reader", "r"));
    assert_eq!(ask(reader, "SELECT * FROM b").await, (200, None));
    assert_eq!(
        ask(reader, "DELETE FROM b USE KEYS 'k'").await,
        (401, Some(13014))
    );
    let ping = Call::new("GET", "/admin/ping").by(None);
    assert_eq!(ping.send(&cluster, Service::Query).await.status, 200);
}

#[tokio::test]
async fn a_plan_is_prepared_executed_lost_and_prepared_again() {
    let cluster = cluster(2, 0).await;
    let prepared = run(&cluster, "PREPARE SELECT RAW $1 + 1").await.results();
    let name = prepared[0]["name"].as_str().unwrap().to_owned();
    let encoded = prepared[0]["encoded_plan"].as_str().unwrap().to_owned();
    let execute = async || ask(&cluster, json!({"prepared": name, "args": [1]})).await;
    let execute_encoded = async || {
        let body = json!({"prepared": name, "encoded_plan": encoded, "args": [1]});
        ask(&cluster, body).await
    };
    assert_eq!(execute().await.results(), json!([2]));
    let by_statement = format!("EXECUTE `{name}` USING [4]");
    assert_eq!(run(&cluster, &by_statement).await.results(), json!([5]));
    for (loss, code) in [
        (PlanLoss::Forgotten, 4040),
        (PlanLoss::Unrecognizable, 4050),
        (PlanLoss::Undecodable, 4070),
    ] {
        assert_eq!(cluster.lose_plans(loss), 1);
        assert_eq!(execute().await.code(), code);
        if loss == PlanLoss::Forgotten {
            assert_eq!(
                execute_encoded().await.results(),
                json!([2]),
                "it brings its plan"
            );
        } else {
            assert_eq!(execute_encoded().await.code(), code);
        }
        let again = run(&cluster, "PREPARE SELECT RAW $1 + 1").await.results();
        assert_eq!(again[0]["name"], name.as_str());
        assert_eq!(execute().await.results(), json!([2]));
    }
}

#[tokio::test]
async fn the_errors_that_clients_retry_can_be_scripted() {
    let cluster = cluster(1, 0).await;
    let index_gone = "queryport.indexNotFound: index not found";
    for (code, message) in [
        (4040, "No such prepared statement"),
        (4050, "Unrecognizable prepared statement"),
        (4070, "Unable to decode prepared statement"),
        (5000, index_gone),
        (5000, "something else broke"),
    ] {
        let body =
            json!({"errors": [{"code": code, "msg": message, "retry": true}], "status": "fatal"});
        let script = Script::on(Service::Query)
            .matching("hotels")
            .answer(500, body.to_string());
        let guard = cluster.script(script.times(1));
        let refused = run(&cluster, "SELECT * FROM hotels").await;
        assert_eq!((refused.status, refused.code()), (500, code));
        assert_eq!(refused.json()["errors"][0]["msg"], message);
        assert_eq!(
            run(&cluster, "SELECT RAW 1").await.results(),
            json!([1]),
            "it does not match"
        );
        assert_eq!(
            run(&cluster, "SELECT * FROM hotels").await.code(),
            12003,
            "it ran out"
        );
        assert_eq!(guard.answered(), 1);
    }
}

#[tokio::test]
async fn a_script_for_a_statement_answers_for_its_prepared_plan() {
    let cluster = cluster(1, 0).await;
    run(&cluster, "PREPARE p AS SELECT RAW 1 /* hotels */").await;
    let _script = cluster.script(
        Script::on(Service::Query)
            .matching("hotels")
            .rows([json!("h")]),
    );
    let answer = ask(&cluster, json!({"prepared": "p", "client_context_id": "c"})).await;
    assert_eq!(answer.results(), json!(["h"]));
    assert_eq!(answer.json()["clientContextID"], "c");
}

#[tokio::test]
async fn rows_can_end_with_an_error_or_a_cut() {
    let cluster = cluster(1, 0).await;
    let rows = || (0..3).map(|at| json!({"at": at}));
    let error = json!({"code": 5000, "msg": "lost a node", "retry": true});
    let failing = cluster.script(
        Script::on(Service::Query)
            .rows(rows())
            .then_error(error.clone()),
    );
    let answer = run(&cluster, "SELECT 1").await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("transfer-encoding: chunked"));
    let json = answer.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
    assert_eq!(
        (&json["errors"], &json["status"]),
        (&json!([error]), &json!("errors"))
    );
    drop(failing);
    let _cut = cluster.script(Script::on(Service::Query).rows(rows()).then_cut());
    let cut = run(&cluster, "SELECT 1").await;
    assert!(!cut.whole);
    assert!(cut.body.ends_with("{\"at\":2}"), "{}", cut.body);
}

#[tokio::test]
async fn a_document_on_a_node_that_is_down_is_an_error_and_not_missing() {
    let cluster = with_documents().await;
    let down = cluster.nodes()[1];
    let key = key_on(&cluster, down);
    cluster.crash(down).await.unwrap();
    let body = json!({"statement": "SELECT RAW 1 FROM b USE KEYS $1", "args": [key]});
    assert_eq!(ask(&cluster, body).await.code(), 12008);
    assert_eq!(run(&cluster, "SELECT COUNT(*) FROM b").await.code(), 5000);
}

#[tokio::test]
async fn many_rows_stream() {
    let cluster = cluster(1, 0).await;
    let values: Vec<String> = (0..2000).map(|at| format!("('k{at:04}', {at})")).collect();
    run(
        &cluster,
        &format!("UPSERT INTO b VALUES {}", values.join(",")),
    )
    .await;
    let answer = run(&cluster, "SELECT META().id AS id, b AS v FROM b").await;
    assert!(answer.head.contains("transfer-encoding: chunked"));
    let rows = answer.results();
    assert_eq!(rows.as_array().unwrap().len(), 2000);
    assert_eq!(rows[1999], json!({"id": "k1999", "v": 1999}));
    assert_eq!(answer.json()["metrics"]["resultCount"], 2000);
}
