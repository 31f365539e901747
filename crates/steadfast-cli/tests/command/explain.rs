//! `steadfast explain`.

use serde_json::Value;

use crate::support::{Output, steadfast};

fn explain(arguments: &str) -> Output {
    let mut all = vec!["explain"];
    all.extend(arguments.split(' '));
    steadfast(&all)
}

fn json(arguments: &str) -> Value {
    let output = explain(&format!("{arguments} --json"));
    assert!(output.ok(), "{arguments}: {output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn a_temporary_failure_is_explained_in_full() {
    let expected = "\
upsert answered ETMPFAIL (0x86)
  reason      KV_TEMPORARY_FAILURE: the server is temporarily unable to apply the operation, and did not apply it
  likely      the node is probably warming up after a restart; or it is out of memory, or behind on its disk
  decision    retry: the reason allows it, although upsert is not idempotent
  delays      1, 2, 4, 8, 16, 32, 64, 128, 256, 500 ms … until the deadline (2.5 s: 13 attempts at most)
  rule        RFC 0049, Response Code Retry List
  strategy    best effort (backoff 1ms × 2ⁿ up to 500ms), failing fast on terminal errors
  what helps  wait if the node has just started: it is warming up; otherwise it is out of memory or behind on its disk: send fewer requests, or add memory
If the connection had closed before the response instead: no retry: it may have been applied, and upsert is not idempotent.
";
    for status in ["0x86", "134", "ETMPFAIL", "etmpfail"] {
        let output = explain(&format!("kv upsert --status {status}"));
        assert_eq!(output.stdout, expected);
    }
}

#[test]
fn the_stage_decides_before_the_response() {
    let cut = json("kv upsert --in-flight");
    assert_eq!(
        (&cut["retry"], &cut["refusal"]),
        (&false.into(), &"unsafe".into())
    );
    assert_eq!(cut["may_have_been_applied"], true);
    let cut = json("kv get --in-flight");
    assert_eq!(
        (&cut["retry"], &cut["may_have_been_applied"]),
        (&true.into(), &false.into())
    );
    let unsent = json("kv upsert --not-sent");
    assert_eq!(
        (&unsent["retry"], &unsent["reason"]),
        (&true.into(), &"SOCKET_NOT_AVAILABLE".into())
    );
    assert_eq!(json("query --in-flight")["retry"], false);
    assert_eq!(json("query --in-flight --readonly")["retry"], true);
    assert_eq!(json("management GET --in-flight")["retry"], true);
    assert_eq!(json("management POST --in-flight")["retry"], false);
}

#[test]
fn a_document_that_is_not_locked_is_the_likeliest_cause_of_an_unlock_that_fails() {
    let output = explain("kv unlock --status 0x86");
    assert!(
        output
            .stdout
            .contains("likely      the document is probably not locked")
    );
    assert!(!output.stdout.contains("memory"), "{}", output.stdout);
    let likely = json("kv unlock --status 0x86")["likely_cause"].to_string();
    assert!(likely.contains("not locked"), "{likely}");
}

#[test]
fn strategies_give_up_for_different_reasons() {
    let missing = "kv get --not-sent COLLECTION_NOT_FOUND --strategy";
    assert_eq!(
        json(&format!("{missing} best-effort-until-terminal"))["refusal"],
        "terminal"
    );
    assert_eq!(json(&format!("{missing} best-effort"))["retry"], true);
    let moved = json("kv upsert --status NOT_MY_VBUCKET --strategy no-retry");
    assert_eq!(moved["retry"], true);
    let busy = json("kv upsert --status ETMPFAIL --strategy no-retry");
    assert_eq!(busy["retry"], false);
    for (strategy, retries) in [("guidance", 4), ("aws-2.0", 2), ("aws-2.1", 2)] {
        let busy = json(&format!(
            "kv get --status ETMPFAIL --timeout 60s --strategy {strategy}"
        ));
        let delays = busy["delays"].as_array().unwrap();
        assert_eq!(delays.len(), retries, "{strategy}");
        // As after throttling: a temporary failure says that the node is busy.
        assert_eq!(delays[0]["longest_ms"], 1000.0, "{strategy}");
        assert_eq!(delays[0]["shortest_ms"], 0.0, "{strategy}");
    }
}

#[test]
fn responses_of_services_are_explained_by_code_and_status() {
    for (arguments, reason) in [
        ("query --code 4050", "QUERY_PREPARED_STATEMENT_FAILURE"),
        (
            "query --code 5000 --message queryport.indexNotFound",
            "QUERY_INDEX_NOT_FOUND",
        ),
        ("analytics --code 23007", "ANALYTICS_TEMPORARY_FAILURE"),
        ("search --http 429", "SEARCH_TOO_MANY_REQUESTS"),
        ("views --http 302", "VIEWS_NO_ACTIVE_PARTITION"),
        ("views --http 503", "VIEWS_TEMPORARY_FAILURE"),
    ] {
        assert_eq!(json(arguments)["reason"], reason, "{arguments}");
    }
    for (arguments, error) in [
        ("query --code 5000", "InternalServerFailure"),
        ("analytics --code 23001", "Couchbase"),
        ("search --http 430", "Couchbase"),
        ("management POST --http 503", "InternalServerFailure"),
    ] {
        let explained = json(arguments);
        assert_eq!(
            (&explained["error"], &explained["retry"]),
            (&error.into(), &false.into())
        );
    }
}

#[test]
fn a_custom_error_map_explains_a_status_and_directs_its_retries() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("map.json");
    let map = r#"{"version":2,"revision":1,"errors":{"ff0":{"name":"BUSY","desc":"busy",
        "attrs":["auto-retry"],"retry":{"strategy":"constant","interval":7,"after":3}}}}"#;
    std::fs::write(&path, map).unwrap();
    let file = path.to_str().unwrap();
    let known = json(&format!(
        "kv get --status 0xff0 --error-map {file} --strategy error-map"
    ));
    assert_eq!(known["reason"], "KV_ERROR_MAP_RETRY_INDICATED");
    assert_eq!(known["delays"][0]["longest_ms"], 3.0);
    assert_eq!(known["delays"][1]["longest_ms"], 7.0);
    assert_eq!(json("kv get --status 0xff0")["retry"], false);
}

#[test]
fn a_table_has_every_end_of_an_attempt() {
    let table = explain("kv upsert --table").stdout;
    // Each row is below its decision.
    for (decision, cause, ended) in [
        (
            "no retry: it may have been applied, and upsert is not idempotent",
            "SOCKET_CLOSED_WHILE_IN_FLIGHT",
            "got no answer: the connection closed",
        ),
        (
            "retry: ",
            "KV_TEMPORARY_FAILURE",
            "answered ETMPFAIL (0x86)",
        ),
        (
            "no retry: the response is final",
            "ValueTooLarge",
            "answered E2BIG (0x03)",
        ),
    ] {
        let row = format!("\n  {cause:<33} {ended}\n");
        let (above, _) = table.split_once(&row).expect(&row);
        let found = above.lines().rfind(|line| !line.starts_with(' ')).unwrap();
        assert!(found.starts_with(decision), "{found}\nis above\n{row}");
    }
    for operation in [
        "kv get_and_lock",
        "query",
        "analytics",
        "search",
        "views",
        "management POST",
    ] {
        for line in explain(&format!("{operation} --table")).stdout.lines() {
            assert!(line.chars().count() <= 80, "{operation}: {line}");
        }
    }
    let rows = json("views --table");
    let retried = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["retry"] == true);
    assert_eq!(
        retried.count(),
        4 + 1 + 17,
        "not sent and not terminal, in flight, responses"
    );
}

#[test]
fn invalid_arguments_are_rejected_with_a_suggestion() {
    for (arguments, text) in [
        ("kv", "get_and_lock"),
        ("kv frobnicate --in-flight", "is not an operation of kv"),
        ("kv get", "--in-flight"),
        ("kv get --status NONSENSE", "is not a status"),
        ("kv get --http 500", "--status"),
        ("query --status 0x86", "--code"),
        ("kv get --not-sent NONSENSE", "is not a reason"),
        ("kv get --in-flight --timeout 5", "2.5s"),
        ("kv get --readonly --in-flight", "--readonly"),
        ("management FETCH --in-flight", "DELETE"),
        ("search upsert --in-flight", "only one operation"),
        ("kv get --status 0x86 --in-flight", "cannot be used with"),
        ("frob get", "possible values"),
    ] {
        let output = explain(arguments);
        assert_eq!(output.status, 2, "{arguments}: {output:?}");
        assert!(output.stderr.contains(text), "{arguments}: {output:?}");
    }
}

#[test]
fn a_deadline_before_the_first_delay_is_reported() {
    let status = ["--status", "ETMPFAIL", "--timeout", "1ms"];
    let output = steadfast(&[&["explain", "kv", "get"][..], &status].concat());
    assert!(output.ok(), "{output:?}");
    assert!(
        output
            .stdout
            .contains("delays      none before the deadline (1 ms)"),
        "{output:?}"
    );
}
