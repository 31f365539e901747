//! The command line has everything that the control endpoint can do.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::Running;

/// The routes of the endpoint, and a command line for each, in an order in which all succeed.
const COMMANDS: &[(&str, &str)] = &[
    ("GET /status", "topology show"),
    ("GET /ca", "control ca"),
    ("POST /faults", "fault add --opcode SET hold"),
    ("GET /faults", "fault list"),
    ("DELETE /faults/{id}", "fault remove 0"),
    ("DELETE /faults", "fault clear"),
    (
        "POST /scripts",
        "control add-script '{\"service\":\"query\",\"status\":503}'",
    ),
    ("GET /scripts", "control scripts"),
    ("DELETE /scripts/{id}", "control remove-script 0"),
    ("DELETE /scripts", "control clear-scripts"),
    ("GET /plans", "control plans"),
    ("POST /plans/lose", "control lose-plans --as undecodable"),
    (
        "GET /journal?since=0&limit=1000",
        "control journal --since 0 --limit 5",
    ),
    (
        "POST /topology/rebalance-in",
        "topology rebalance-in --pause 0",
    ),
    (
        "POST /topology/rebalance-out",
        "topology rebalance-out 2 --pause 0",
    ),
    ("POST /topology/rebalance", "topology rebalance --pause 0"),
    ("GET /topology/rebalance", "topology show"),
    ("POST /topology/crash", "topology crash 1"),
    ("POST /topology/restart", "topology restart 1"),
    ("POST /topology/fail-over", "topology fail-over 1"),
    ("POST /topology/recover", "topology recover 1"),
    ("POST /holds", "control hold replication 0"),
    ("DELETE /holds/{id}", "control release 0"),
    (
        "POST /buckets",
        "control add-bucket b --replicas 0 --vbuckets 16 --quota-bytes 1073741824",
    ),
    ("POST /buckets/{bucket}/scopes", "control add-scope b/s"),
    (
        "POST /buckets/{bucket}/scopes/{scope}/collections",
        "control add-collection b/s/c --max-ttl 60",
    ),
    (
        "DELETE /buckets/{bucket}/scopes/{scope}/collections/{collection}",
        "control drop-collection b/s/c",
    ),
    (
        "DELETE /buckets/{bucket}/scopes/{scope}",
        "control drop-scope b/s",
    ),
    ("POST /buckets/{bucket}/flush", "control flush-bucket b"),
    ("DELETE /buckets/{bucket}", "control drop-bucket b"),
    (
        "POST /users",
        "control put-user u:secret:data_reader[default]",
    ),
    ("DELETE /users/{name}", "control remove-user u"),
    ("POST /clock", "control clock 60s"),
    (
        "PUT /error-map/{hex code}",
        "control put-error 0x7ff0 '{\"name\":\"X\",\"desc\":\"d\",\"attrs\":[\"retry-later\"]}'",
    ),
    (
        "DELETE /error-map/{hex code}",
        "control remove-error 0x7ff0",
    ),
    ("POST /topology/cancel", "topology cancel"),
];

/// The list of routes that the endpoint prints, each as its method and path.
fn routes(cluster: &Running) -> BTreeSet<String> {
    let address = cluster.fact("control").strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let token = cluster.fact("token");
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut help = String::new();
    stream.read_to_string(&mut help).unwrap();
    let mut routes = BTreeSet::new();
    for line in help.lines() {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            for (at, _) in line.match_indices(&format!("{method} ")) {
                let rest = line[at + method.len()..].trim_start();
                // A list of paths, each up to two spaces or the next comma.
                let paths = rest.split("  ").next().unwrap_or_default();
                let mut folder = String::new();
                for path in paths.split(", ").filter(|path| path.starts_with('/')) {
                    // `/topology/fail-over, /crash`: a name beside the one before.
                    let is_sibling =
                        path.starts_with('/') && !path[1..].contains('/') && !folder.is_empty();
                    let path = path.split(" {\"").next().unwrap_or_default().trim();
                    let whole = match is_sibling {
                        true => format!("{folder}{path}"),
                        false => path.to_owned(),
                    };
                    folder = whole
                        .rsplit_once('/')
                        .map_or("", |(folder, _)| folder)
                        .to_owned();
                    routes.insert(format!("{method} {whole}"));
                }
            }
        }
    }
    routes
}

#[test]
fn every_route_of_the_control_endpoint_has_a_command_with_json() {
    let cluster = Running::start(&["--nodes", "2", "--vbuckets", "16", "--tls"]);
    let known: BTreeSet<String> = COMMANDS
        .iter()
        .map(|(route, _)| (*route).to_owned())
        .collect();
    assert_eq!(routes(&cluster), known);
    for (route, line) in COMMANDS {
        let words = shlex::split(line).unwrap();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.push("--json");
        let output = cluster.run(&words);
        if *route == "POST /topology/cancel" {
            // None is running, which the cluster says.
            assert_eq!(output.status, 1, "{line}: {output:?}");
            assert!(
                output.stderr.contains("no rebalance is running"),
                "{output:?}"
            );
            continue;
        }
        assert_eq!(output.status, 0, "{line}: {output:?}");
        let response: Result<Value, _> = serde_json::from_str(&output.stdout);
        assert!(response.is_ok(), "{line}: {output:?}");
    }
}

#[test]
fn the_journal_shows_the_writes_of_a_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("documents.json");
    std::fs::write(&path, r#"{"a": 1, "b": 2}"#).unwrap();
    let cluster = Running::start(&["--vbuckets", "16", "--load", path.to_str().unwrap()]);
    let shown = cluster.stdout(&["control", "journal", "--key", "b"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    assert!(
        shown.contains("SET") && shown.contains("\"b\"  of bucket default"),
        "{shown}"
    );
    let all = cluster.stdout(&["control", "journal", "--json"]);
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(all["entries"].as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn the_journal_says_what_it_does_not_show() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("documents.json");
    std::fs::write(&path, r#"{"a": 1, "b": 2, "c": 3}"#).unwrap();
    let load = ["--load", path.to_str().unwrap(), "--journal", "2"];
    let cluster = Running::start(&[&["--vbuckets", "16"], &load[..]].concat());
    let journal = |arguments: &[&str]| cluster.run(&[&["control", "journal"], arguments].concat());
    let part = journal(&["--limit", "1"]);
    assert_eq!(part.stdout.lines().count(), 1, "{part:?}");
    for said in [
        "no longer has the writes before 1",
        "read up to 2 of 3 writes",
    ] {
        assert!(part.stderr.contains(said), "{part:?}");
    }
    let rest = journal(&["--since", "2"]);
    assert_eq!(
        (rest.stdout.lines().count(), &*rest.stderr),
        (1, ""),
        "{rest:?}"
    );
}

#[test]
fn what_control_cannot_do_has_a_status() {
    let cluster = Running::start(&["--vbuckets", "16"]);
    for (line, status) in [
        ("control drop-bucket nope", 3),
        ("control release 7", 3),
        ("control remove-user nope", 3),
        ("control remove-script 7", 3),
        ("control ca", 3),
        ("control hold replication 9", 3),
        ("control add-scope default/_nope", 1),
        ("control add-bucket default", 1),
        ("control add-scope default", 2),
        ("control add-collection default/s", 2),
        ("control add-collection default//c", 2),
        ("control add-script nonsense", 2),
        ("control put-error 0x7ff0 nonsense", 2),
        ("control put-error nonsense {}", 1),
        ("control clock -1s", 2),
        ("control hold nothing 0", 2),
    ] {
        let words = shlex::split(line).unwrap();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = cluster.run(&words);
        assert_eq!(output.status, status, "{line}: {output:?}");
    }
}
