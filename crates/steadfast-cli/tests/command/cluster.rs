//! `steadfast cluster`, and the commands that control it.

use crate::support::{Running, command, run, steadfast};

#[test]
fn a_cluster_prints_its_addresses_and_accepts_commands() {
    let cluster = Running::start(&["--nodes", "2", "--vbuckets", "16", "--tls", "--seed", "7"]);
    assert!(
        cluster
            .fact("connect")
            .starts_with("couchbase://127.0.0.1:")
    );
    assert!(
        cluster
            .fact("with TLS")
            .starts_with("couchbases://127.0.0.1:")
    );
    assert_eq!(cluster.fact("seed"), "7");
    let authority = cluster.fact("authority");
    assert!(
        std::fs::read_to_string(authority)
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE")
    );
    std::fs::remove_file(authority).unwrap();

    let added = cluster.stdout(&[
        "fault", "add", "--opcode", "SET", "--times", "3", "answer", "--status", "ETMPFAIL",
    ]);
    assert!(
        added.contains("SET, 3 times: answer ETMPFAIL (0x86)    hit 0 of 0"),
        "{added}"
    );
    assert_eq!(cluster.stdout(&["fault", "list"]), added);
    cluster.stdout(&["fault", "remove", "0"]);
    assert_eq!(cluster.stdout(&["fault", "list"]), "");
    let refused = cluster.run(&["fault", "add", "answer", "--status", "NONSENSE"]);
    assert!(!refused.ok());
    let error = refused.stderr;
    assert!(error.contains("\"NONSENSE\" is not a status"), "{error}");

    assert_eq!(
        cluster.stdout(&["topology", "rebalance-in", "--pause", "0"]),
        "node 2\n"
    );
    cluster.stdout(&["topology", "crash", "0"]);
    let shown = cluster.stdout(&["topology", "show"]);
    assert!(
        shown.contains("down") && shown.contains("bucket default  16 vbuckets"),
        "{shown}"
    );
}

#[test]
fn a_missing_control_address_is_reported_with_the_ways_to_give_it() {
    let output = steadfast(&["fault", "list"]);
    assert!(!output.ok());
    assert!(output.stderr.contains("--control TOKEN@HOST:PORT"));
}

#[cfg(unix)]
#[test]
fn a_stopped_cluster_removes_its_temporary_file() {
    for signal in ["INT", "TERM"] {
        let cluster = Running::start(&["--vbuckets", "16", "--tls"]);
        let authority = std::path::PathBuf::from(cluster.fact("authority"));
        assert!(authority.exists());
        cluster.signal(signal);
        assert_eq!(cluster.end().0, 0, "{signal}");
        assert!(!authority.exists(), "{signal}: {}", authority.display());
    }
    // A file that --ca-out names is kept.
    let directory = tempfile::tempdir().unwrap();
    let wanted = directory.path().join("ca.pem");
    let path = wanted.to_str().unwrap();
    let cluster = Running::start(&["--vbuckets", "16", "--tls", "--ca-out", path]);
    cluster.signal("TERM");
    assert_eq!(cluster.end().0, 0);
    assert!(wanted.exists());
}

#[test]
fn faults_of_http_services_take_http_statuses_only() {
    let cluster = Running::start(&["--vbuckets", "16"]);
    let shown = cluster.stdout(&[
        "fault",
        "add",
        "--service",
        "query",
        "answer",
        "--status",
        "503",
    ]);
    assert!(
        shown.contains("any query request: answer HTTP 503 "),
        "{shown}"
    );
    let shown = cluster.stdout(&["fault", "add", "--service", "views", "garble"]);
    assert!(shown.contains("garble the body"), "{shown}");
    for (rule, problem) in [
        (
            &["--service", "query", "answer", "--status", "ETMPFAIL"][..],
            "an HTTP status",
        ),
        (
            &["--service", "query", "answer", "--status", "0x86"],
            "an HTTP status",
        ),
        (
            &["--service", "query", "answer", "--status", "100"],
            "200 to 599",
        ),
        (
            &["--service", "query", "answer", "--status", "600"],
            "200 to 599",
        ),
        (
            &[
                "--service",
                "query",
                "answer",
                "--status",
                "503",
                "--context",
                "x",
            ],
            "kv",
        ),
        (&["--service", "query", "--opcode", "SET", "hold"], "kv"),
        (&["--service", "query", "--bucket", "default", "hold"], "kv"),
        (
            &["--service", "query", "--key", "k", "hold"],
            "begins with /",
        ),
        (
            &["--service", "search", "garble", "--what", "opaque"],
            "body",
        ),
        (&["answer", "--status", "503"], "--service"),
        (&["--times", "0", "hold"], "1 or more"),
        (&["delay", "--ms", "3600001"], "an hour"),
    ] {
        let refused = cluster.run(&[&["fault", "add"], rule].concat());
        assert_eq!(refused.status, 2, "{rule:?}: {refused:?}");
        assert!(refused.stderr.contains(problem), "{rule:?}: {refused:?}");
    }
}

#[test]
fn ipv6_addresses_are_printed_in_brackets() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return; // This machine has no IPv6.
    }
    let cluster = Running::start(&["--vbuckets", "16", "--replicas", "0", "--bind", "::1"]);
    let address = format!("{}/default", cluster.fact("connect"));
    assert!(address.starts_with("couchbase://[::1]:"), "{address}");
    assert!(cluster.fact("manage").starts_with("http://[::1]:"));
    let mut doctor = command(&["doctor", &address, "--user", "Administrator"]);
    doctor.env("STEADFAST_PASSWORD", "password");
    let output = run(doctor);
    assert!(output.ok(), "{output:?}");
}

#[test]
fn an_unwritable_certificate_is_reported_before_anything_else() {
    let output = steadfast(&["cluster", "--tls", "--ca-out", "/no/such/place/ca.pem"]);
    assert_eq!((output.status, &*output.stdout), (1, ""), "{output:?}");
    assert!(
        output.stderr.contains("/no/such/place/ca.pem"),
        "{output:?}"
    );
}

#[test]
#[cfg(unix)]
fn the_cluster_ends_with_the_process_that_started_it() {
    use std::io::{BufRead, BufReader, Read};
    let mut shell = std::process::Command::new("sh")
        .args([
            "-c",
            "\"$0\" cluster & read _",
            env!("CARGO_BIN_EXE_steadfast"),
        ])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(shell.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("up;") {
        line.clear();
        assert_ne!(
            printed.read_line(&mut line).unwrap(),
            0,
            "the cluster did not start"
        );
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    // The cluster has the other end of the pipe, so this returns when it has ended.
    printed.read_to_string(&mut line).unwrap();
}
