//! A command line that makes no sense ends with status 2 and says what would.

use std::net::TcpListener;

use crate::support::{Output, Served, command, run, steadfast};

const ADDRESS: &str = "couchbase://127.0.0.1:1/travel";

fn refused(arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    command.env("STEADFAST_PASSWORD", "secret");
    let output = run(command);
    assert_eq!(output.status, 2, "{arguments:?}: {output:?}");
    assert_eq!(output.stdout, "", "{arguments:?}");
    output
}

#[test]
fn wrong_values_end_with_status_2_wherever_they_are_found() {
    for (arguments, problem) in [
        (&["get", "couchbase://", "k"][..], "host"),
        (
            &["get", "couchbase://a/t?kv_timeout=soon", "k"],
            "kv_timeout",
        ),
        (&["get", "couchbase://a/t/s/c/d", "k"], "more parts"),
        (&["get", ADDRESS, "k", "--user", "a:b"], "colon"),
        (&["get", ADDRESS, "k", "--user", ""], "user"),
        (
            &["get", ADDRESS, "k", "--user", "app", "--timeout", "0s"],
            "timeout",
        ),
        (&["get", ADDRESS, "", "--user", "app"], "key"),
        (&["fault", "list"], "--control HOST:PORT"),
        (&["fault", "list", "--control", "nowhere"], "HOST:PORT"),
        (
            &["fault", "list", "--control", "127.0.0.1:99999"],
            "HOST:PORT",
        ),
        (
            &["fault", "add", "answer", "--status", "NONSENSE"],
            "no status",
        ),
        (&["fault", "add", "--node", "64", "hold"], "no node 64"),
        (&["topology", "show"], "--control HOST:PORT"),
        (&["topology", "crash", "64"], "no node 64"),
        (&["cluster", "--nodes", "0"], "1 to 64 nodes"),
        (&["cluster", "--nodes", "65"], "1 to 64 nodes"),
        (&["cluster", "--replicas", "9"], "replicas"),
        (&["cluster", "--vbuckets", "0"], "vbuckets"),
        (&["cluster", "--bucket", ""], "name"),
        (
            &["cluster", "--bucket", "a", "--bucket", "a"],
            "exists already",
        ),
        (&["cluster", "--user", "nocolon"], "NAME:PASSWORD"),
        (&["cluster", "--user", ":x"], "NAME:PASSWORD"),
        (&["cluster", "--user", "x:"], "NAME:PASSWORD"),
        (&["cluster", "--host", ""], "host"),
        (&["cluster", "--host", "a b"], "host"),
        (
            &[
                "explain",
                "kv",
                "get",
                "--error-map",
                "/no/such/file",
                "--status",
                "1",
            ],
            "/no/such/file",
        ),
        (
            &[
                "explain",
                "kv",
                "get",
                "--error-map",
                "/dev/null",
                "--status",
                "1",
            ],
            "no error map",
        ),
        (
            &[
                "explain",
                "kv",
                "get",
                "--status",
                "ETMPFAIL",
                "--timeout",
                "0s",
            ],
            "timeout",
        ),
    ] {
        let said = refused(arguments).stderr;
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
}

#[test]
fn what_the_client_refuses_to_send_is_blamed_on_the_command_line() {
    let served = Served::start(|builder| builder);
    let travel = served.address("travel");
    let key = "k".repeat(300);
    for (arguments, problem) in [
        (&["get", &travel, &key][..], "250"),
        (
            &["upsert", &travel, "k", "1", "--expiry", "9999999h"],
            "2105",
        ),
        (&["upsert", &travel, "k"], "no document was piped in"),
        (
            &["query", &travel, "SELECT 1", "--param", "=1"],
            "NAME=VALUE",
        ),
        (&["explain", "views", "--http", "42"], "100..=599"),
        (
            &["fault", "add", "--probability", "0", "hold"],
            "never hits",
        ),
        (&["cluster", "--host", "a..b"], "host"),
        (&["cluster", "--host", "evil\"name"], "host"),
    ] {
        let refused = served.run(arguments);
        assert_eq!(refused.status, 2, "{arguments:?}: {refused:?}");
        assert!(
            refused.stderr.contains(problem),
            "{arguments:?}: {refused:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn files_without_an_end_are_not_read_to_it() {
    let endless = "/dev/zero";
    for arguments in [
        &["cluster", "--schedule", endless][..],
        &[
            "get",
            ADDRESS,
            "k",
            "--user",
            "app",
            "--password-file",
            endless,
        ],
        &["upsert", ADDRESS, "k", "--user", "app", "--file", endless],
        &[
            "explain",
            "kv",
            "get",
            "--in-flight",
            "--error-map",
            endless,
        ],
    ] {
        let said = refused(arguments).stderr;
        assert!(said.contains("more than"), "{arguments:?}: {said}");
    }
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_told_from_one_that_is_not_set() {
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
fn values_below_zero_are_told_to_be_wrong_and_not_taken_for_options() {
    let get = |more: &[&'static str]| [&["get", ADDRESS, "k", "--user", "app"], more].concat();
    let add = |more: &[&'static str]| [&["fault", "add"], more].concat();
    for arguments in [
        get(&["--timeout", "-1s"]),
        get(&["--timeout", "-1"]),
        vec!["upsert", ADDRESS, "k", "1", "--expiry", "-5m"],
        vec!["replace", ADDRESS, "k", "1", "--cas", "-5"],
        add(&["--node", "-1", "hold"]),
        add(&["--times", "-1", "hold"]),
        add(&["--skip", "-1", "hold"]),
        add(&["--probability", "-0.5", "hold"]),
        add(&["--seed", "-1", "hold"]),
        add(&["delay", "--ms", "-5"]),
        vec!["fault", "remove", "-1"],
        vec!["topology", "crash", "-1"],
        vec!["topology", "rebalance", "--step", "-1"],
        vec!["topology", "rebalance", "--pause", "-1"],
        vec!["cluster", "--nodes", "-1"],
        vec!["cluster", "--vbuckets", "-1"],
        vec!["cluster", "--control-port", "-1"],
        vec!["explain", "query", "--code", "-1"],
        vec!["explain", "views", "--http", "-1"],
        vec!["explain", "kv", "get", "--in-flight", "--timeout", "-1s"],
        vec!["load", "--duration", "-1s"],
        vec!["load", "--nodes", "-1"],
    ] {
        let said = refused(&arguments).stderr;
        assert!(!said.contains("tip:"), "{arguments:?}: {said}");
        assert!(
            !said.contains("unexpected argument"),
            "{arguments:?}: {said}"
        );
        assert!(!said.contains("invalid digit"), "{arguments:?}: {said}");
    }
}

#[test]
fn options_that_need_each_other_are_asked_for_together() {
    for (alone, other) in [
        (["--client-key", "key.pem"], "--client-certificate"),
        (["--client-certificate", "certificate.pem"], "--client-key"),
    ] {
        let said = refused(&["get", ADDRESS, "k", alone[0], alone[1]]).stderr;
        assert!(said.contains(other), "{said}");
        let said = refused(&["get", ADDRESS, "k", "--user", "app", alone[0], alone[1]]).stderr;
        assert!(said.contains("--client-"), "{said}");
    }
}

#[test]
fn what_a_write_cannot_mean_is_not_offered() {
    let said = refused(&[
        "upsert", ADDRESS, "k", "1", "--user", "app", "--expiry", "0s",
    ])
    .stderr;
    assert!(said.contains("leave --expiry out"), "{said}");
    let help = steadfast(&["insert", "--help"]).stdout;
    assert!(!help.contains("--cas"), "{help}");
    refused(&["insert", ADDRESS, "k", "1", "--user", "app", "--cas", "1"]);
    let help = steadfast(&["replace", "--help"]).stdout;
    assert!(help.contains("--cas"), "{help}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let port = address.port().to_string();
    let output = steadfast(&["cluster", "--control-port", &port]);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stderr.contains(&address.to_string()), "{output:?}");
    assert!(output.stderr.contains("--control-port"), "{output:?}");
}

#[test]
fn every_help_says_what_the_statuses_mean() {
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
fn a_strategy_has_one_name_in_all_commands() {
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
        // Refused for something else.
        let said = refused(&["get", "nowhere", "k", "--strategy", name]).stderr;
        assert!(!said.contains("--strategy"), "{name}: {said}");
    }
    for help in [
        steadfast(&["get", "--help"]),
        steadfast(&["explain", "--help"]),
    ] {
        assert!(help.stdout.contains("best-effort"), "{help:?}");
    }
}
