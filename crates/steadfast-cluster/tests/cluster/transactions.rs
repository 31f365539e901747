//! Statements inside transactions, over real sockets.

use std::time::Duration;

use crate::subdocument::{lookup, mutate};
use crate::support::http::{Call, HttpReply};
use crate::support::statements::{self, ALL, query as ask};
use crate::support::{BUCKET, Client, VBUCKETS, cluster};
use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};
use steadfast_wire::subdoc::{DocFlags, PathFlags};
use steadfast_wire::{Opcode, Status, vbucket};

const RECORD: &str = "_txn:atr-0-#14";

/// Runs a statement outside of transactions.
async fn outside(cluster: &TestCluster, statement: &str) -> Value {
    ask(cluster, json!({"statement": statement}))
        .await
        .results()
}

/// A transaction, with its id.
struct Transaction<'a>(&'a TestCluster, String);

impl<'a> Transaction<'a> {
    async fn begin(cluster: &'a TestCluster, body: Value) -> Self {
        let mut body = body;
        body["statement"] = json!("BEGIN WORK");
        let begun = ask(cluster, body).await.results();
        Self(cluster, begun[0]["txid"].as_str().unwrap().to_owned())
    }

    async fn plain(cluster: &'a TestCluster) -> Self {
        Self::begin(cluster, json!({})).await
    }

    async fn ask(&self, statement: &str) -> HttpReply {
        ask(self.0, json!({"statement": statement, "txid": self.1})).await
    }

    async fn run(&self, statement: &str) -> Value {
        self.ask(statement).await.results()
    }

    /// What an SDK sends for a single document.
    async fn document(&self, step: &str, key: &str, value: Value, cas: Value) -> HttpReply {
        let body = json!({
            "statement": format!("EXECUTE __{step}"), "txid": self.1,
            "args": ["default:`b`.`_default`.`_default`", key, value, {}],
            "txdata": {"kv": true, "scas": cas},
        });
        ask(self.0, body).await
    }
}

async fn with_documents() -> TestCluster {
    let cluster = cluster(2, 1).await;
    for (key, value) in [("k1", r#"{"n":1}"#), ("k2", r#"{"n":2}"#)] {
        let set = Client::for_key(&cluster, key).await.set(key, value).await;
        assert_eq!(set.status(), Status::Success);
    }
    cluster
}

/// What the attribute of transactions says in a document, also in a deleted one.
async fn attribute(cluster: &TestCluster, key: &str, path: &str) -> (Status, String) {
    let specs = [(Opcode::SubdocGet, path, PathFlags::XATTR)];
    let mut client = Client::for_key(cluster, key).await;
    let (status, mut found) = lookup(&mut client, key, &specs, DocFlags::ACCESS_DELETED).await;
    found.pop().unwrap_or((status, String::new()))
}

/// Nothing of a transaction is left in these documents, nor in the record.
async fn assert_clean(cluster: &TestCluster, keys: &[&str]) {
    for key in keys {
        let (status, text) = attribute(cluster, key, "txn").await;
        assert_ne!(status, Status::Success, "{key}: {text}");
    }
    let (status, entries) = attribute(cluster, RECORD, "attempts").await;
    assert!(status != Status::Success || entries == "{}", "{entries}");
}

#[tokio::test]
async fn statements_in_transactions_are_applied_or_undone_and_leave_nothing() {
    for section in statements::sections(include_str!("statements/transactions.sql")) {
        let cluster = with_documents().await;
        statements::run(&cluster, section).await;
        assert_clean(&cluster, &["k1", "k2", "k3", "k4", "k5"]).await;
    }
}

#[tokio::test]
async fn a_change_is_staged_in_an_attribute_of_its_document() {
    let cluster = with_documents().await;
    let transaction = Transaction::plain(&cluster).await;
    transaction
        .run("INSERT INTO b VALUES ('k3', {'n': 3})")
        .await;
    let mut client = Client::for_key(&cluster, "k3").await;
    assert_eq!(client.get("k3").await.status(), Status::KeyNotFound);
    let (_, kind) = attribute(&cluster, "k3", "txn.op.type").await;
    assert_eq!(kind, "\"insert\"");
    transaction.run("COMMIT").await;
    assert_eq!(client.get("k3").await.value(), br#"{"n":3}"#);
}

#[tokio::test]
async fn a_write_outside_of_transactions_makes_the_next_statement_retry() {
    let cluster = with_documents().await;
    let transaction = Transaction::plain(&cluster).await;
    transaction
        .run("UPDATE b SET n = 10 WHERE META().id = 'k1'")
        .await;
    Client::for_key(&cluster, "k1")
        .await
        .set("k1", r#"{"n":5}"#)
        .await;
    let refused = transaction.ask("UPDATE b USE KEYS 'k1' SET n = 11").await;
    assert_eq!(refused.code(), 17_020);
    // What is committed counts, as in a real cluster.
    transaction.run("COMMIT").await;
    let n = outside(&cluster, "SELECT RAW n FROM b USE KEYS 'k1'").await;
    assert_eq!(n, json!([10]));
    assert_clean(&cluster, &["k1"]).await;
}

#[tokio::test]
async fn single_documents_are_read_and_written_as_sdks_do_it() {
    let cluster = with_documents().await;
    let transaction = Transaction::plain(&cluster).await;
    let nothing = Value::Null;
    let get = transaction
        .document("get", "k1", json!({}), nothing.clone())
        .await;
    let row = get.results()[0].clone();
    assert_eq!(row["doc"], json!({"n": 1}));
    let cas = row["scas"].clone();
    let replaced = transaction
        .document("update", "k1", json!({"n": 8}), cas.clone())
        .await;
    assert_eq!(replaced.results()[0]["doc"], json!({"n": 8}));
    assert_ne!(replaced.results()[0]["scas"], cas);
    let stale = transaction
        .document("update", "k1", json!({"n": 9}), cas.clone())
        .await;
    assert_eq!(stale.code(), 17_015);
    let stale = transaction.document("delete", "k2", json!({}), cas).await;
    assert_eq!(stale.code(), 17_015);
    for (step, key, code) in [
        ("insert", "k1", 17_012),
        ("get", "none", 17_014),
        ("update", "none", 17_014),
        ("delete", "none", 17_014),
    ] {
        let refused = transaction
            .document(step, key, json!({}), nothing.clone())
            .await;
        assert_eq!(refused.code(), code, "{step}");
    }
    transaction
        .document("insert", "k3", json!({"n": 3}), nothing.clone())
        .await
        .results();
    transaction
        .document("delete", "k2", json!({}), nothing)
        .await
        .results();
    transaction.run("COMMIT").await;
    let after = json!([{"id": "k1", "n": 8}, {"id": "k3", "n": 3}]);
    assert_eq!(outside(&cluster, ALL).await, after);
}

/// Stages a change and makes the entry in the record, as an SDK does before its first statement.
async fn staged_by_a_client(cluster: &TestCluster) -> Value {
    let record =
        json!({"bkt": BUCKET, "scp": "_default", "coll": "_default", "id": "_txn:atr-1-#10b6"});
    let staged = json!({
        "id": {"txn": "t-1", "atmpt": "a-1", "op": "o"}, "atr": record,
        "op": {"type": "insert", "stgd": {"n": 9}}, "aux": {"uf": 0x0200_0000},
    });
    let create = DocFlags::ACCESS_DELETED | DocFlags::CREATE_AS_DELETED | DocFlags::INSERT;
    let mut client = Client::for_key(cluster, "k9").await;
    let text = staged.to_string();
    let specs = [(
        Opcode::SubdocDictAdd,
        "txn",
        text.as_str(),
        PathFlags::XATTR,
    )];
    let answer = mutate(&mut client, "k9", &specs, create).await;
    assert_eq!(answer.status(), Status::SubdocSuccessDeleted);
    let mut client = Client::for_key(cluster, "_txn:atr-1-#10b6").await;
    let entry = json!({"tid": "t-1", "st": "PENDING", "exp": 15_000}).to_string();
    let start = PathFlags::XATTR | PathFlags::EXPAND_MACROS;
    let specs = [
        (
            Opcode::SubdocDictAdd,
            "attempts.a-1",
            entry.as_str(),
            PathFlags::XATTR,
        ),
        (
            Opcode::SubdocDictAdd,
            "attempts.a-1.tst",
            "\"${Mutation.CAS}\"",
            start,
        ),
    ];
    let made = mutate(&mut client, "_txn:atr-1-#10b6", &specs, DocFlags::UPSERT).await;
    assert_eq!(made.status(), Status::Success);
    json!({
        "id": {"txn": "t-1", "atmpt": "a-1"}, "atr": record, "state": {"timeLeftMs": 14_000},
        "mutations": [{"bkt": BUCKET, "scp": "_default", "coll": "_default", "id": "k9",
                       "cas": answer.header().cas.to_string(), "type": "INSERT"}],
    })
}

#[tokio::test]
async fn changes_that_a_client_has_staged_belong_to_the_transaction() {
    for (end, after) in [("COMMIT", json!([9])), ("ROLLBACK", json!([]))] {
        let cluster = with_documents().await;
        let txdata = staged_by_a_client(&cluster).await;
        let other = Transaction::plain(&cluster).await;
        let refused = other.ask("INSERT INTO b VALUES ('k9', {'n': 0})").await;
        assert_eq!(
            refused.code(),
            17_020,
            "the client's transaction is pending"
        );
        let transaction = Transaction::begin(&cluster, json!({"txdata": txdata})).await;
        assert_eq!(transaction.1, "a-1");
        let inside = "SELECT RAW n FROM b WHERE META().id = 'k9'";
        assert_eq!(transaction.run(inside).await, json!([9]));
        assert_eq!(other.run(inside).await, json!([]));
        transaction.run(end).await;
        assert_eq!(outside(&cluster, inside).await, after, "{end}");
        assert_clean(&cluster, &["k9"]).await;
        let (_, entries) = attribute(&cluster, "_txn:atr-1-#10b6", "attempts").await;
        assert_eq!(entries, "{}", "{end}");
    }
}

#[tokio::test]
async fn a_transaction_whose_staged_changes_are_gone_does_not_begin() {
    let cluster = with_documents().await;
    let txdata = staged_by_a_client(&cluster).await;
    Client::for_key(&cluster, "k9").await.set("k9", "{}").await;
    let refused = ask(
        &cluster,
        json!({"statement": "BEGIN WORK", "txdata": txdata}),
    )
    .await;
    assert_eq!(refused.code(), 17_006);
}

#[tokio::test]
async fn a_transaction_that_takes_too_long_is_undone() {
    let cluster = with_documents().await;
    let before = outside(&cluster, ALL).await;
    let slow = Transaction::begin(&cluster, json!({"txtimeout": "15000ms"})).await;
    slow.run("UPDATE b SET n = 10 WHERE META().id = 'k1'").await;
    let abandoned = Transaction::begin(&cluster, json!({"txtimeout": "15000ms"})).await;
    abandoned
        .run("UPDATE b SET n = 10 WHERE META().id = 'k2'")
        .await;
    cluster.advance_clock(Duration::from_secs(16));
    assert_eq!(slow.ask("COMMIT").await.code(), 17_010);
    assert_eq!(slow.ask("COMMIT").await.code(), 17_004);
    // The next one tidies up.
    let next = Transaction::plain(&cluster).await;
    assert_eq!(outside(&cluster, ALL).await, before);
    next.run("COMMIT").await;
    assert_clean(&cluster, &["k1", "k2"]).await;
}

#[tokio::test]
async fn a_transaction_lives_on_one_node() {
    let cluster = with_documents().await;
    let transaction = Transaction::plain(&cluster).await;
    transaction
        .run("UPDATE b SET n = 10 WHERE META().id = 'k1'")
        .await;
    let body = json!({"statement": "COMMIT", "txid": transaction.1});
    let call = Call::new("POST", "/query/service").json(&body);
    let elsewhere = call.send_to(&cluster.addresses(Service::Query)[1]).await;
    assert_eq!(elsewhere.code(), 17_004);
    let node = cluster.nodes()[0];
    cluster.crash(node).await.unwrap();
    cluster.restart(node).await.unwrap();
    assert_eq!(transaction.ask("COMMIT").await.code(), 17_004);
    // Its change is still staged. Once it has expired, others may change the document.
    let next = Transaction::plain(&cluster).await;
    assert_eq!(
        next.ask("UPDATE b USE KEYS 'k1' SET n = 2").await.code(),
        17_020
    );
    cluster.advance_clock(Duration::from_secs(121));
    let next = Transaction::plain(&cluster).await;
    next.run("UPDATE b USE KEYS 'k1' SET n = 2").await;
    next.run("COMMIT").await;
    let n = outside(&cluster, "SELECT RAW n FROM b USE KEYS 'k1'").await;
    assert_eq!(n, json!([2]));
}

#[tokio::test]
async fn a_transaction_may_insert_many_documents_of_one_vbucket() {
    let cluster = with_documents().await;
    let wanted = vbucket::of_key(b"k1", VBUCKETS);
    let same = |key: &String| vbucket::of_key(key.as_bytes(), VBUCKETS) == wanted;
    let keys: Vec<String> = (0..)
        .map(|at| format!("m{at}"))
        .filter(same)
        .take(40)
        .collect();
    let transaction = Transaction::plain(&cluster).await;
    for key in &keys {
        let statement = format!("INSERT INTO b VALUES ('{key}', {{'n': 1}})");
        transaction.run(&statement).await;
    }
    let count = "SELECT RAW COUNT(*) FROM b WHERE META().id LIKE 'm%'";
    assert_eq!(transaction.run(count).await, json!([40]));
    transaction.run("COMMIT").await;
    assert_eq!(outside(&cluster, count).await, json!([40]));
}
