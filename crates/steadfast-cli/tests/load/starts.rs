//! How a run begins, and what keeps it from beginning.

use std::process::{Command, Output};

use steadfast_cluster::{BucketSettings, TestCluster};

use super::{load, password, report};

/// A cluster of the user's, with three nodes.
async fn cluster() -> TestCluster {
    let bucket = BucketSettings::new("mine").replicas(1).vbuckets(16);
    let builder = TestCluster::builder().nodes(3).bucket(bucket);
    builder.user("app", "secret").start().await.unwrap()
}

/// A short run against a cluster of the user's, at this address.
fn connect(address: &str, arguments: &[&str]) -> Output {
    let password = password();
    let mut all = vec![
        "--connect",
        address,
        "--user=app",
        "--password-file",
        password.path().to_str().unwrap(),
        "--duration=100ms",
        "--concurrency=4",
        "--rate=400",
    ];
    all.extend(arguments);
    load(&all)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_starts_whichever_strategy_it_tries_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = runtime.block_on(cluster());
    let address = format!("{}/mine", cluster.connection_string());
    for strategy in [
        "best-effort-until-terminal",
        "best-effort",
        "guidance",
        "adaptive",
        "aws-2.0",
        "aws-2.1",
        "no-retry",
        "error-map",
    ] {
        let output = connect(&address, &["--strategy", strategy, "--json", "--quiet"]);
        let report = report(&output);
        assert_eq!(report["strategy"], strategy);
        assert!(report["operations"]["ok"].as_u64() > Some(10), "{strategy}");
    }
}

#[test]
fn a_collection_that_does_not_exist_is_told_before_the_run_as_by_the_other_commands() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = runtime.block_on(cluster());
    for (place, advice) in [
        ("s/c", "create the scope"),
        ("_default/nope", "create the collection"),
    ] {
        let address = format!("{}/mine/{place}", cluster.connection_string());
        // Also under a strategy that would wait for it.
        let output = connect(&address, &["--strategy=best-effort"]);
        let err = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{err}");
        let header = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(header.contains(&format!("/mine/{place} ")), "{header}");
        assert_eq!(header.lines().count(), 1, "it ran: {header}");
        assert!(err.contains(&format!("  → {advice}")), "{err}");
        assert_eq!(told(&err), told(&get(&address)), "not what `get` says");
    }
    assert!(cluster.journal().since(0).is_empty(), "it ran");
}

/// What `steadfast get` says of an address.
fn get(address: &str) -> String {
    let password = password();
    let output = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(["get", address, "k", "--user=app", "--password-file"])
        .arg(password.path())
        .output();
    stderr(&output.unwrap())
}

/// What an error says, without how often and how long it was tried.
fn told(err: &str) -> Vec<String> {
    let lines = err.lines();
    lines
        .map(|line| match line.split_once(" attempt") {
            Some((said, _)) => said.trim_end_matches(char::is_numeric).to_owned(),
            None => line.to_owned(),
        })
        .collect()
}

#[test]
fn where_nobody_listens_the_cause_is_told_and_what_to_do() {
    let output = connect("couchbase://127.0.0.1:1/mine?connect_timeout=500ms", &[]);
    let err = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains("timed out after 0.5"), "{err}");
    assert!(err.contains("127.0.0.1:1: Connection refused"), "{err}");
    assert!(err.contains("  → `steadfast doctor`"), "{err}");
}

#[test]
fn what_is_refused_is_told_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let cluster = runtime.block_on(cluster());
    let cluster = cluster.connection_string();
    let wrong = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(wrong.path(), "wrong\n").unwrap();
    let address = format!("{cluster}/mine");
    let password = wrong.path().to_str().unwrap();
    let flags = ["--user=app", "--password-file", password, "--duration=1s"];
    let refused = load(&[&["--connect", &address][..], &flags].concat());
    let elsewhere = connect(&format!("{cluster}/yours"), &[]);
    for (output, sentence) in [
        (refused, "refused these credentials"),
        (elsewhere, "does not open the bucket"),
    ] {
        let err = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert_eq!(err.matches(sentence).count(), 1, "{err}");
    }
}
