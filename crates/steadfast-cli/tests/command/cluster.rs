//! `steadfast cluster` as a person starts it, and the commands that talk to it.

use crate::support::{Running, steadfast};

#[test]
fn a_cluster_prints_where_it_is_and_obeys() {
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
    assert!(error.contains("\"NONSENSE\" is no status"), "{error}");

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
fn a_command_that_does_not_know_its_cluster_says_how_to_tell_it() {
    let output = steadfast(&["fault", "list"]);
    assert!(!output.ok());
    assert!(output.stderr.contains("--control HOST:PORT"));
}
