//! `steadfast cluster` as a person starts it, and the commands that talk to it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_steadfast");

struct Running {
    process: Child,
    printed: Vec<String>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(BINARY)
            .arg("cluster")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let printed = lines
            .map(Result::unwrap)
            .take_while(|line| !line.starts_with("up;"))
            .collect();
        Self { process, printed }
    }

    fn fact(&self, name: &str) -> &str {
        let line = self
            .printed
            .iter()
            .find(|line| line.starts_with(name))
            .unwrap();
        line[name.len()..].split_whitespace().next().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let control = self.fact("control").strip_prefix("http://").unwrap();
        Command::new(BINARY)
            .args(arguments)
            .env("STEADFAST_CONTROL", control)
            .output()
            .unwrap()
    }

    fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

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
    assert!(!refused.status.success());
    let error = String::from_utf8(refused.stderr).unwrap();
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
    let output = Command::new(BINARY)
        .args(["fault", "list"])
        .env_remove("STEADFAST_CONTROL")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("--control HOST:PORT")
    );
}
