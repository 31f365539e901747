//! `--json`: results and errors that programs can read.

use serde_json::Value;

use crate::support::{Output, Running, Served, command, run};

/// Runs a command line that must fail, and returns its status and the error as JSON.
fn failed(line: &str) -> (i32, Value) {
    let words = shlex::split(line).unwrap();
    let mut command = command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("STEADFAST_PASSWORD", "secret");
    error(&run(command))
}

fn error(output: &Output) -> (i32, Value) {
    assert_ne!(output.status, 0, "{output:?}");
    let error: Value = serde_json::from_str(&output.stderr).unwrap_or_else(|problem| {
        panic!("not one JSON value, {problem}: {output:?}");
    });
    assert!(error["error"].is_string(), "{error}");
    assert!(error["message"].is_string(), "{error}");
    assert!(error["ambiguous"].is_boolean(), "{error}");
    (output.status, error)
}

#[test]
fn errors_of_the_command_line_are_json() {
    for line in [
        "get --json",
        "get nowhere k --json",
        "get couchbase://a/t k --json --timeout soon",
        "get couchbase://a/t k --json",
        "get couchbase://a k --user app --json",
        "upsert couchbase://a/t k 1 --json --user app --password-file /no/such/file",
        "upsert couchbase://a/t k nonsense --json --user app",
        "query couchbase://a/t/s/c 'SELECT 1' --user app --json",
        "explain kv frob --json",
        "explain kv get --json --status NONSENSE",
        "storm --json no-such-outage",
        "load --json --expect nonsense",
        "load --json --user app",
        "simulate --json --merge Cargo.toml",
        "simulate --json --jobs 0",
        "cluster --json --nodes 0",
        "cluster --json --user a:hunter2:king",
        "cluster --json --load /no/such/file",
        "control --json journal",
        "control --json clock soon --control a:1",
        "control --json add-script {} --control a:1",
        "doctor --json nowhere",
        "fault list --json",
        "fault add --json answer --status NONSENSE",
        "topology show --json --control nowhere",
        "frobnicate --json",
    ] {
        let (status, error) = failed(line);
        assert_eq!(status, 2, "{line}: {error}");
        assert_eq!(error["error"], "InvalidArgument", "{line}: {error}");
        assert_eq!(error["ambiguous"], false, "{line}");
    }
}

#[test]
fn errors_of_a_connection_are_json() {
    // Nothing listens there.
    let closed = "127.0.0.1:1";
    for (line, status) in [
        (
            format!("get couchbase://{closed}/t k --user app --timeout 1500ms --json"),
            1,
        ),
        (format!("fault list --control {closed} --json"), 1),
        (format!("topology crash 0 --control {closed} --json"), 1),
        ("load --json --html /no/such/page".to_owned(), 1),
    ] {
        let (found, error) = failed(&line);
        assert_eq!(found, status, "{line}: {error}");
    }
}

#[test]
fn a_secret_in_the_command_line_is_not_repeated_as_json() {
    let (_, error) = failed("get couchbase://app:hunter2@a/t k --json");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn commands_that_control_a_cluster_print_its_responses() {
    let cluster = Running::start(&["--nodes", "2", "--vbuckets", "16"]);
    let json = |arguments: &[&str]| {
        let text = cluster.stdout(&[arguments, &["--json"]].concat());
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let added = json(&["fault", "add", "--opcode", "SET", "hold"]);
    assert_eq!(added["id"], 0, "{added}");
    assert_eq!(json(&["fault", "list"])[0]["id"], 0);
    json(&["fault", "remove", "0"]);
    json(&["fault", "clear"]);
    let status = json(&["topology", "show"]);
    assert_eq!(status["nodes"].as_array().unwrap().len(), 2, "{status}");
    let joined = json(&["topology", "rebalance-in", "--pause", "0"]);
    assert_eq!(joined["node"], 2, "{joined}");
    json(&["topology", "crash", "0"]);
}

#[test]
fn what_does_not_exist_has_status_3_in_all_commands() {
    let cluster = Running::start(&["--vbuckets", "16"]);
    for arguments in [
        &["fault", "remove", "99"][..],
        &["topology", "crash", "9"],
        &["topology", "crash", "99"],
        &["topology", "restart", "99"],
        &["topology", "recover", "99"],
        &["topology", "fail-over", "99"],
        &["topology", "rebalance-out", "99"],
    ] {
        let plain = cluster.run(arguments);
        assert_eq!(plain.status, 3, "{arguments:?}: {plain:?}");
        assert!(plain.stderr.contains("there is no"), "{plain:?}");
        let (status, error) = error(&cluster.run(&[arguments, &["--json"]].concat()));
        assert_eq!(status, 3, "{arguments:?}");
        assert_eq!(error["error"], "NotFound");
        assert_eq!(error["ambiguous"], false);
    }
    let served = Served::start(|builder| builder);
    let missing = served.run(&["get", &served.address("travel"), "nothing", "--json"]);
    let (status, error) = error(&missing);
    assert_eq!(
        (status, &error["error"]),
        (3, &Value::from("DocumentNotFound"))
    );
}

#[test]
fn a_cluster_prints_its_addresses_as_json() {
    let schedule = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(schedule.path(), "0s fault add --opcode GET hold\n0s stop\n").unwrap();
    let path = schedule.path().to_str().unwrap();
    let tls = ["--vbuckets", "16", "--tls", "--json", "--schedule", path];
    let output = run(command(&[&["cluster"], &tls[..]].concat()));
    assert!(output.ok(), "{output:?}");
    let lines: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let address = |field: &str| lines[0][field].as_str().unwrap().to_owned();
    assert!(address("connect").starts_with("couchbase://"));
    assert!(address("connect_tls").starts_with("couchbases://"));
    assert!(address("control").starts_with("127.0.0.1:"));
    assert!(address("authority").ends_with(".pem"));
    assert_eq!(lines[1]["event"], "fault add --opcode GET hold");
    assert_eq!(lines[2]["id"], 0);
    assert_eq!(lines[3]["event"], "stop");
}
