//! `steadfast cluster`, and the commands that control it.

#[cfg(unix)]
use std::io::{BufRead, BufReader, Read};
#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use std::process::{Child, ChildStdout, Command, Stdio};
#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use crate::support::{BINARY, quiet};
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

/// Runs a shell script whose `$0` is the binary, until it has printed a line that begins so.
/// Returns the shell and the rest of the output.
#[cfg(unix)]
fn shell_until(script: &str, begin: &str) -> (Child, BufReader<ChildStdout>) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, BINARY]).stdin(Stdio::piped());
    quiet(&mut shell);
    let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut printed = BufReader::new(shell.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with(begin) {
        line.clear();
        assert_ne!(
            printed.read_line(&mut line).unwrap(),
            0,
            "{begin} is missing"
        );
    }
    (shell, printed)
}

/// Waits until all processes that have the other end of a pipe have ended.
#[cfg(unix)]
fn ends_within(limit: Duration, mut printed: BufReader<ChildStdout>) -> bool {
    let (ended, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let read = printed.read_to_string(&mut String::new());
        ended.send(read.is_ok())
    });
    end.recv_timeout(limit) == Ok(true)
}

#[test]
#[cfg(unix)]
fn the_cluster_ends_with_the_process_that_started_it() {
    let (mut shell, printed) = shell_until("\"$0\" cluster & read _", "up;");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(ends_within(Duration::from_secs(30), printed));
}

#[test]
#[cfg(unix)]
fn a_command_gets_the_addresses_and_ends_the_cluster_with_its_status() {
    let script = "
        test -n \"$STEADFAST_USERNAME$STEADFAST_CONTROL\" && test -s \"$STEADFAST_CA\" || exit 9
        \"$0\" upsert \"$STEADFAST_CONNECTION_STRING/default\" k '{\"a\":1}' 2>&1 || exit 8
        \"$0\" get \"$STEADFAST_CONNECTION_STRING_TLS/default\" k --ca \"$STEADFAST_CA\" || exit 7
        \"$0\" fault list >&2 || exit 6
        echo \"authority $STEADFAST_CA\"
        exit 42";
    let line = ["cluster", "--vbuckets", "16", "--tls", "--"];
    let output = steadfast(&[&line[..], &["sh", "-c", script, BINARY]].concat());
    assert_eq!(output.status, 42, "{output:?}");
    // Nothing but the command's own output.
    assert!(output.stdout.starts_with("stored, cas "), "{output:?}");
    assert!(output.stdout.contains("{\"a\":1}"), "{output:?}");
    let (_, authority) = output.stdout.trim().rsplit_once("authority ").unwrap();
    assert!(!Path::new(authority).exists(), "{authority}");
}

#[test]
#[cfg(unix)]
fn the_statuses_of_commands_are_those_of_a_shell() {
    for (command, status) in [
        (&["true"][..], 0),
        (&["sh", "-c", "kill -s KILL $$"], 137),
        (&["/no/such/command"], 127),
    ] {
        let output = steadfast(&[&["cluster", "--vbuckets", "16", "--"], command].concat());
        assert_eq!((output.status, &*output.stdout), (status, ""), "{output:?}");
        assert_eq!(output.stderr.contains("/no/such/command"), status == 127);
    }
}

#[test]
#[cfg(unix)]
fn a_command_ends_with_its_cluster() {
    // With the cluster's parent, and by a signal; `exec`, so that one process has the pipe.
    let command = "sh -c 'echo runs; exec sleep 600'";
    let script = format!("\"$0\" cluster --vbuckets 16 -- {command} & read _");
    let (mut shell, printed) = shell_until(&script, "runs");
    shell.kill().unwrap();
    shell.wait().unwrap();
    assert!(ends_within(Duration::from_secs(30), printed));

    let script = format!("exec \"$0\" cluster --vbuckets 16 -- {command}");
    let (mut shell, printed) = shell_until(&script, "runs");
    let id = shell.id().to_string();
    let sent = Command::new("kill").args(["-s", "TERM", &id]).status();
    assert!(sent.unwrap().success());
    assert_eq!(shell.wait().unwrap().code(), Some(143));
    assert!(ends_within(Duration::from_secs(30), printed));
}
