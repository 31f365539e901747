//! `steadfast get`, `upsert`, `insert`, `replace`, `remove` and `query`.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use steadfast_cluster::Service;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::ScriptSpec;
use steadfast_couchbase::collection::Raw;
use steadfast_couchbase::{Cluster, Credentials};
use steadfast_wire::{Opcode, Status};

use crate::support::{Served, command, run, steadfast};

fn served() -> Served {
    Served::start(|builder| builder.nodes(2))
}

#[test]
fn documents_are_stored_and_read_byte_for_byte() {
    let served = served();
    let travel = served.address("travel");
    let text = r#"{"b": 1.0, "a": [1, 2]}"#;
    let stored = served.run(&["upsert", &travel, "k", text]);
    assert!(stored.ok() && stored.stdout.is_empty(), "{stored:?}");
    assert!(stored.stderr.starts_with("stored, cas "), "{stored:?}");
    let found = served.run(&["get", &travel, "k"]);
    assert_eq!(found.stdout, text);
    let cas = stored.stderr.trim().trim_start_matches("stored, ");
    assert_eq!(found.stderr.trim(), cas);

    let all = served.run(&["get", &travel, "k", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["content"], json!({"a": [1, 2], "b": 1.0}));
    assert_eq!(all["cas"], cas.trim_start_matches("cas "));
}

#[test]
fn text_is_text_in_json() {
    let served = served();
    let travel = served.address("travel");
    let store = async |text: &str| {
        let string = served.cluster().connection_string();
        let client = Cluster::connect(&string, Credentials::password("app", "secret")).await;
        let client = client.unwrap();
        // Some SDKs have their own bits in the flags.
        let text = Raw::with_flags(text.to_owned(), 0x0400_0004);
        let collection = client.bucket("travel").default_collection();
        collection.upsert_raw("k", text).await.unwrap();
        client.close().await;
    };
    for text in ["Dear Ada", "42"] {
        served.block_on(store(text));
        let found = served.run(&["get", &travel, "k", "--json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap();
        assert_eq!(found["content"], json!(text), "{found}");
    }
}

#[test]
fn values_come_from_arguments_files_and_pipes() {
    let served = served();
    let travel = served.address("travel");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("value");
    std::fs::write(&path, [0xff, 0x00]).unwrap();
    let file = path.to_str().unwrap();
    let refused = served.run(&["upsert", &travel, "k", "--file", file]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("--binary"), "{refused:?}");
    let stored = served.run(&["upsert", &travel, "k", "--file", file, "--binary"]);
    assert!(stored.ok(), "{stored:?}");
    let found = served.run(&["get", &travel, "k", "--json"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(found["bytes"], json!([0xff, 0x00]));

    let mut piped = command(&["upsert", &travel, "p", "--user", "app"]);
    piped
        .env("STEADFAST_PASSWORD", "secret")
        .stdin(Stdio::piped());
    let mut process = piped.stderr(Stdio::null()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(b"[1]").unwrap();
    assert!(process.wait().unwrap().success());
    assert_eq!(served.run(&["get", &travel, "p"]).stdout, "[1]");
}

#[test]
fn a_statement_that_failed_in_part_may_have_been_applied() {
    let served = served();
    let travel = served.address("travel");
    let insert = |values: &str| {
        let statement = format!("INSERT INTO travel {values}");
        served.run(&["query", &travel, &statement])
    };
    assert!(insert("VALUES ('dup', 1)").ok());
    let partial = insert("VALUES ('fresh', 1), VALUES ('dup', 2)");
    assert_eq!(partial.status, 4, "{partial:?}");
    assert!(
        partial.stderr.contains("may have been applied"),
        "{partial:?}"
    );
    assert_eq!(served.run(&["get", &travel, "fresh"]).stdout, "1");
    let refused = insert("VALUES ('dup', 2)");
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(!refused.stderr.contains("applied"), "{refused:?}");
    let invalid = insert("VALES ('other', 2)");
    assert_eq!(invalid.status, 1, "{invalid:?}");
}

#[test]
fn the_exit_status_tells_what_happened() {
    let served = served();
    let travel = served.address("travel");
    let status = |arguments: &[&str]| served.run(arguments).status;
    assert_eq!(status(&["get", &travel, "k"]), 3);
    assert_eq!(status(&["replace", &travel, "k", "1"]), 3);
    assert_eq!(status(&["remove", &travel, "k"]), 3);
    assert_eq!(status(&["insert", &travel, "k", "1"]), 0);
    assert_eq!(status(&["insert", &travel, "k", "1"]), 5);
    assert_eq!(status(&["replace", &travel, "k", "2", "--cas", "1"]), 5);
    assert_eq!(status(&["replace", &travel, "k", "2"]), 0);
    assert_eq!(status(&["remove", &travel, "k", "--json"]), 0);
    assert_eq!(status(&["get", &served.address("nope"), "k"]), 1);

    let rule = Fault::on(Opcode::Set).key("cut").cut_after_applying();
    let _guard = served.cluster().fault(rule);
    let cut = served.run(&["upsert", &travel, "cut", "1"]);
    assert_eq!(cut.status, 4, "{cut:?}");
    assert!(cut.stderr.contains("may have been applied"), "{cut:?}");
    assert!(cut.stderr.contains("→ reads are retried"), "{cut:?}");
}

#[test]
fn an_error_is_printed_as_a_line_a_history_or_json() {
    let served = Served::start(|builder| builder);
    let rule = Fault::on(Opcode::Get).answer(Status::TemporaryFailure);
    let _guard = served.cluster().fault(rule);
    // A limit on attempts, which unlike a timeout does not depend on the machine's load.
    let travel = served.address("travel?kv_timeout=60s");
    let get = |more: &[&str]| {
        let get = ["get", &travel, "k", "--strategy", "aws-2.1"];
        served.run(&[&get, more].concat())
    };
    let short = get(&[]);
    assert_eq!(short.status, 1);
    let lines: Vec<&str> = short.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{short:?}");
    assert!(lines[0].contains("temporary failure"), "{short:?}");
    assert!(
        lines[0].contains("3 attempts, KV_TEMPORARY_FAILURE ×3"),
        "{short:?}"
    );
    assert!(
        lines[1].starts_with("  → wait if the node has just started"),
        "{short:?}"
    );
    let long = get(&["-v"]);
    assert!(
        long.stderr.contains("#1 ") && long.stderr.contains("#3 "),
        "{long:?}"
    );
    let machine = get(&["--json"]);
    let error: Value = serde_json::from_str(&machine.stderr).unwrap();
    assert_eq!(error["error"], "TemporaryFailure");
    assert_eq!(error["retryReasons"], json!(["KV_TEMPORARY_FAILURE"]));
}

#[test]
fn a_strategy_can_be_chosen() {
    let served = Served::start(|builder| builder);
    let rule = Fault::on(Opcode::Get).answer(Status::TemporaryFailure);
    let _guard = served.cluster().fault(rule);
    let travel = served.address("travel");
    let output = served.run(&["get", &travel, "k", "--strategy", "no-retry"]);
    assert_eq!(output.status, 1);
    assert!(output.stderr.contains("temporary failure"), "{output:?}");
    assert!(!output.stderr.contains("timed out"), "{output:?}");
}

#[test]
fn the_address_may_contain_a_collection() {
    let served = served();
    let cluster = served.cluster();
    cluster.create_scope("travel", "inventory").unwrap();
    cluster
        .create_collection("travel", "inventory", "users", 0)
        .unwrap();
    let users = served.address("travel/inventory/users");
    assert!(served.run(&["upsert", &users, "k", "1"]).ok());
    assert_eq!(served.run(&["get", &users, "k"]).stdout, "1");
    assert_eq!(
        served.run(&["get", &served.address("travel"), "k"]).status,
        3
    );
    let half = served.run(&["get", &served.address("travel/inventory"), "k"]);
    assert_eq!(half.status, 2, "{half:?}");
    assert!(half.stderr.contains("no collection"), "{half:?}");
    let none = served.run(&["get", &served.address(""), "k"]);
    assert!(
        none.status == 2 && none.stderr.contains("no bucket"),
        "{none:?}"
    );
}

#[test]
fn queries_print_one_row_per_line() {
    // A transaction lives on one node, and each command picks one by chance.
    let served = Served::start(|builder| builder.nodes(1));
    let cluster = served.address("");
    let rows = served.run(&["query", &cluster, "SELECT 1 AS one", "--readonly"]);
    assert!(rows.ok(), "{rows:?}");
    assert_eq!(rows.stdout, "{\"one\":1}\n");
    let wrong = served.run(&["query", &cluster, "SELEC 1"]);
    assert_eq!(wrong.status, 1);
    assert!(
        wrong.stderr.contains("parsing failure (code 3000)"),
        "{wrong:?}"
    );
    let begin = ["query", &cluster, "BEGIN WORK", "--raw", "txtimeout=1h"];
    let begun = served.run(&begin);
    let begun: serde_json::Value = serde_json::from_str(&begun.stdout).unwrap();
    let txid = format!("txid={}", begun["txid"].as_str().unwrap());
    let inside = served.run(&["query", &cluster, "COMMIT", "--raw", &txid]);
    assert!(inside.ok(), "{inside:?}");
    let ended = served.run(&["query", &cluster, "COMMIT", "--raw", &txid]);
    assert!(ended.stderr.contains("is not open here"), "{ended:?}");
    let wrong = served.run(&["query", &cluster, "SELECT 1", "--raw", "x"]);
    assert_eq!(wrong.status, 2, "{wrong:?}");
    let wrong = served.run(&["query", &cluster, "SELECT 1", "--param", "x"]);
    assert_eq!(wrong.status, 2, "{wrong:?}");
}

#[test]
fn a_query_with_json_prints_one_object_with_rows_and_metadata() {
    let served = served();
    let cluster = served.address("");
    let query = ["query", &cluster, "SELECT 1 AS one", "--readonly", "--json"];
    let answer = served.run(&query);
    assert!(answer.ok(), "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(answer["rows"], json!([{"one": 1}]));
    let meta = &answer["meta"];
    assert_eq!(meta["status"], "success");
    assert_eq!(meta["warnings"], json!([]));
    assert_eq!(meta["metrics"]["result_count"], 1);
    assert!(meta["metrics"]["elapsed_ms"].is_number(), "{answer}");
    for id in ["request_id", "client_context_id"] {
        assert!(
            meta[id].as_str().is_some_and(|id| !id.is_empty()),
            "{answer}"
        );
    }

    let rule = Fault::on_service(Service::Query);
    let _guard = served
        .cluster()
        .fault(rule.key("/query/service").answer_http(200, "{"));
    let broken = served.run(&query);
    assert_ne!(broken.status, 0, "{broken:?}");
    assert_eq!(broken.stdout, "", "there was no row");
}

#[test]
fn an_error_after_the_first_row_ends_the_json_object() {
    let served = Served::start(|builder| builder);
    let spec = json!({
        "service": "query", "rows": [{"one": 1}],
        "error": {"code": 5000, "msg": "broke"},
    });
    let script = serde_json::from_value::<ScriptSpec>(spec).unwrap();
    let _guard = served.cluster().script(script.try_into().unwrap());
    let query = ["query", &served.address(""), "SELECT 1", "--json"];
    let answer = served.run(&query);
    assert_eq!(answer.status, 4, "it was executed: {answer:?}");
    let whole: Value = serde_json::from_str(&answer.stdout).unwrap();
    assert_eq!(whole["rows"], json!([{"one": 1}]));
    assert_eq!(whole["meta"], Value::Null);
    let error: Value = serde_json::from_str(&answer.stderr).unwrap();
    assert_eq!(whole["error"], error);
}

#[test]
fn missing_credentials_are_reported_with_the_ways_to_give_them() {
    let output = steadfast(&["get", "couchbase://127.0.0.1:1/travel", "k"]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("STEADFAST_USER"), "{output:?}");
    let output = steadfast(&[
        "get",
        "couchbase://127.0.0.1:1/travel",
        "k",
        "--user",
        "app",
    ]);
    assert_eq!(output.status, 2);
    assert!(output.stderr.contains("STEADFAST_PASSWORD"), "{output:?}");
    let output = steadfast(&["get", "db.example.com", "k", "--user", "app"]);
    assert_eq!(output.status, 2);
    assert!(
        output.stderr.contains("write couchbase://host"),
        "{output:?}"
    );
}

#[test]
fn a_password_file_may_end_with_a_line_break() {
    let served = served();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("password");
    for text in ["secret", "secret\n", "secret\r\n"] {
        std::fs::write(&path, text).unwrap();
        let mut command = command(&[
            "upsert",
            &served.address("travel"),
            "k",
            "1",
            "--user",
            "app",
        ]);
        command.arg("--password-file").arg(&path);
        let output = run(command);
        assert!(output.ok(), "{text:?}: {output:?}");
    }
    let wrong = served.run_as("wrong", &["get", &served.address("travel"), "k"]);
    assert_eq!(wrong.status, 1);
    assert!(
        wrong.stderr.contains("refused these credentials"),
        "{wrong:?}"
    );
    assert!(
        !wrong.stderr.contains("wrong"),
        "no password is printed: {wrong:?}"
    );
}

#[test]
fn an_unreachable_cluster_is_a_timeout_with_advice() {
    let address = "couchbase://127.0.0.1:1/travel";
    let mut command = command(&["get", address, "k", "--user", "app", "--timeout", "1s"]);
    command.env("STEADFAST_PASSWORD", "secret");
    let output = run(command);
    assert_eq!(output.status, 1);
    assert!(output.stderr.contains("timed out"), "{output:?}");
    assert!(output.stderr.contains("→"), "{output:?}");
}
