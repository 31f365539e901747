//! Invalid command lines: exit status 2, and a message that says what to write.

use std::net::TcpListener;

use crate::support::{Output, Served, command, run, steadfast};

const ADDRESS: &str = "couchbase://127.0.0.1:1/travel";

/// Splits a command line as a shell does, and puts the address in for `ADDRESS`.
fn words(line: &str) -> Vec<String> {
    shlex::split(&line.replace("ADDRESS", ADDRESS)).unwrap()
}

/// Runs a command line that must be rejected before anything is printed.
fn rejected(line: &str) -> Output {
    let words = words(line);
    let mut command = command(&words.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("STEADFAST_PASSWORD", "secret");
    let output = run(command);
    assert_eq!(output.status, 2, "{line}: {output:?}");
    assert_eq!(output.stdout, "", "{line}");
    output
}

#[test]
fn invalid_values_end_with_status_2() {
    for (line, problem) in [
        ("get couchbase:// k", "host"),
        ("get couchbase://a/t?kv_timeout=soon k", "kv_timeout"),
        ("get couchbase://a/t/s/c/d k", "too many parts"),
        ("get ADDRESS k --user a:b", "colon"),
        ("get ADDRESS k --user ''", "user"),
        ("get ADDRESS k --user app --timeout 0s", "timeout"),
        ("get ADDRESS '' --user app", "key"),
        ("fault list", "--control TOKEN@HOST:PORT"),
        ("fault list --control nowhere", "HOST:PORT"),
        ("fault list --control 127.0.0.1:99999", "HOST:PORT"),
        ("fault add answer --status NONSENSE", "not a status"),
        ("fault add --node 128 hold", "no node 128"),
        ("topology show", "--control TOKEN@HOST:PORT"),
        ("cluster --nodes 0", "1 to 128 nodes"),
        ("cluster --nodes 129", "1 to 128 nodes"),
        ("cluster --replicas 9", "replicas"),
        ("cluster --vbuckets 0", "vbuckets"),
        ("cluster --bucket ''", "name"),
        ("cluster --bucket a --bucket a", "exists already"),
        ("cluster --user nocolon", "NAME:PASSWORD"),
        ("cluster --user :x", "NAME:PASSWORD"),
        ("cluster --user x:", "NAME:PASSWORD"),
        ("cluster --host ''", "host"),
        ("cluster --host 'a b'", "host"),
        (
            "explain kv get --error-map /no/such/file --status 1",
            "/no/such/file",
        ),
        (
            "explain kv get --error-map /dev/null --status 1",
            "not an error map",
        ),
        ("explain kv get --status ETMPFAIL --timeout 0s", "timeout"),
        ("load --expect p98<1ms", "p99.9"),
        ("load --expect p99<20", "20ms"),
    ] {
        let message = rejected(line).stderr;
        assert!(message.contains(problem), "{line}: {message}");
    }
}

#[test]
fn arguments_that_the_client_rejects_are_usage_errors() {
    let served = Served::start(|builder| builder);
    let travel = served.address("travel");
    let key = "k".repeat(300);
    for (line, problem) in [
        (format!("get {travel} {key}"), "250"),
        (format!("upsert {travel} k 1 --expiry 9999999h"), "2105"),
        (format!("upsert {travel} k"), "standard input is empty"),
        (
            format!("query {travel} 'SELECT 1' --param =1"),
            "NAME=VALUE",
        ),
        ("explain views --http 42".to_owned(), "100..=599"),
        ("fault add --probability 0 hold".to_owned(), "never hits"),
        ("cluster --host a..b".to_owned(), "host"),
        ("cluster --host 'evil\"name'".to_owned(), "host"),
    ] {
        let words = words(&line);
        let rejected = served.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(rejected.status, 2, "{line}: {rejected:?}");
        assert!(rejected.stderr.contains(problem), "{line}: {rejected:?}");
    }
}

#[cfg(unix)]
#[test]
fn endless_files_are_rejected() {
    for line in [
        "cluster --schedule /dev/zero",
        "get ADDRESS k --user app --password-file /dev/zero",
        "upsert ADDRESS k --user app --file /dev/zero",
        "explain kv get --in-flight --error-map /dev/zero",
    ] {
        let message = rejected(line).stderr;
        assert!(message.contains("more than"), "{line}: {message}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_reported_as_such() {
    use std::os::unix::ffi::OsStrExt;

    for variable in ["STEADFAST_USER", "STEADFAST_PASSWORD"] {
        let mut get = command(&["get", ADDRESS, "k"]);
        get.env("STEADFAST_USER", "app")
            .env("STEADFAST_PASSWORD", "x");
        get.env(variable, std::ffi::OsStr::from_bytes(&[0xff]));
        let output = run(get);
        assert_eq!(output.status, 2, "{output:?}");
        let problem = format!("{variable} is not UTF-8");
        assert!(output.stderr.contains(&problem), "{output:?}");
    }
}

#[test]
fn negative_values_are_rejected_as_values_and_not_as_options() {
    for line in [
        "get ADDRESS k --user app --timeout -1s",
        "get ADDRESS k --user app --timeout -1",
        "upsert ADDRESS k 1 --expiry -5m",
        "replace ADDRESS k 1 --cas -5",
        "fault add --node -1 hold",
        "fault add --times -1 hold",
        "fault add --skip -1 hold",
        "fault add --probability -0.5 hold",
        "fault add --seed -1 hold",
        "fault add delay --ms -5",
        "fault remove -1",
        "topology crash -1",
        "topology rebalance --step -1",
        "topology rebalance --pause -1",
        "cluster --nodes -1",
        "cluster --vbuckets -1",
        "cluster --control-port -1",
        "explain query --code -1",
        "explain views --http -1",
        "explain kv get --in-flight --timeout -1s",
        "load --duration -1s",
        "load --nodes -1",
    ] {
        let message = rejected(line).stderr;
        for wrong in ["tip:", "unexpected argument", "invalid digit"] {
            assert!(!message.contains(wrong), "{line}: {message}");
        }
    }
}

#[test]
fn an_option_that_needs_another_names_it() {
    for (alone, other) in [
        ("--client-key key.pem", "--client-certificate"),
        ("--client-certificate certificate.pem", "--client-key"),
    ] {
        let message = rejected(&format!("get ADDRESS k {alone}")).stderr;
        assert!(message.contains(other), "{message}");
        let message = rejected(&format!("get ADDRESS k --user app {alone}")).stderr;
        assert!(message.contains("--client-"), "{message}");
    }
}

#[test]
fn meaningless_options_of_writes_do_not_exist() {
    let message = rejected("upsert ADDRESS k 1 --user app --expiry 0s").stderr;
    assert!(message.contains("leave --expiry out"), "{message}");
    let help = steadfast(&["insert", "--help"]).stdout;
    assert!(!help.contains("--cas"), "{help}");
    rejected("insert ADDRESS k 1 --user app --cas 1");
    let help = steadfast(&["replace", "--help"]).stdout;
    assert!(help.contains("--cas"), "{help}");
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = address.port().to_string();
    let output = steadfast(&["cluster", "--control-port", &port]);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stderr.contains(&address.to_string()), "{output:?}");
    assert!(output.stderr.contains("--control-port"), "{output:?}");
}

#[test]
fn every_help_explains_the_exit_statuses() {
    assert!(steadfast(&["--help"]).stdout.contains("Exit status:"));
    for command in [
        "cluster", "fault", "topology", "explain", "doctor", "get", "upsert", "insert", "replace",
        "remove", "query",
    ] {
        let help = steadfast(&[command, "--help"]).stdout;
        assert!(help.contains("Exit status:"), "{command}: {help}");
        assert!(help.contains("  2  "), "{command}: {help}");
    }
}

#[test]
fn strategies_have_the_same_names_in_all_commands() {
    for name in [
        "best-effort-until-terminal",
        "best-effort",
        "guidance",
        "standard",
        "aws-2.0",
        "aws-2.1",
        "adaptive",
        "no-retry",
        "error-map",
    ] {
        let explain = ["explain", "kv", "get", "--in-flight", "--strategy", name];
        assert_eq!(steadfast(&explain).status, 0, "{name}");
        // Rejected for its address, not for the strategy.
        let message = rejected(&format!("get nowhere k --strategy {name}")).stderr;
        assert!(!message.contains("--strategy"), "{name}: {message}");
    }
    for help in [
        steadfast(&["get", "--help"]),
        steadfast(&["explain", "--help"]),
    ] {
        assert!(help.stdout.contains("best-effort"), "{help:?}");
    }
}

#[test]
fn a_name_that_is_almost_known_gets_a_suggestion() {
    for (line, suggestion) in [
        ("fault add --opcode GTE hold", "GET"),
        (
            "fault add --opcode subdoc-multi-lokup hold",
            "SUBDOC_MULTI_LOOKUP",
        ),
        ("fault add --service qurey hold", "query"),
        ("fault add answer --status ETMPFIAL", "ETMPFAIL"),
        ("fault ad --opcode GET hold", "add"),
        ("explain kv upsrt --in-flight", "upsert"),
        ("explain kv get --status ETMPFIAL", "ETMPFAIL"),
        ("explain kv get --not-sent KV_LOKED", "KV_LOCKED"),
        ("explain kv get --in-flihgt", "--in-flight"),
        ("get couchbase://a/t?kv_timout=1s k", "kv_timeout"),
        ("lod", "load"),
    ] {
        let message = rejected(line).stderr;
        assert!(message.contains(suggestion), "{line}: {message}");
    }
    // Nothing is suggested that has nothing to do with the name.
    let message = rejected("fault add --opcode FROBNICATE hold").stderr;
    assert!(!message.contains("did you mean"), "{message}");
}
