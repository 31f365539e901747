//! `steadfast cluster --schedule`.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::support::{Running, steadfast};

fn written(text: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("faults.txt");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

#[test]
fn a_schedule_injects_faults_over_time_and_stops_the_cluster() {
    let (_directory, path) = written(
        "# warm-up\n\
         0s    fault add --opcode SET --times 3 answer --status ETMPFAIL\n\
         \n\
         50ms  topology rebalance-in --pause 0   # a third node\n\
         60ms  topology crash 0\n\
         60ms  fault clear\n\
         0.1s  stop\n",
    );
    let cluster = Running::start(&[
        "--nodes",
        "2",
        "--vbuckets",
        "16",
        "--schedule",
        path.to_str().unwrap(),
    ]);
    let (status, printed) = cluster.end();
    assert_eq!(status, 0, "{printed:?}");
    let events: Vec<&str> = printed
        .iter()
        .filter_map(|line| line.split_once("s   ").map(|(_, event)| event))
        .collect();
    assert_eq!(
        events,
        [
            "fault add --opcode SET --times 3 answer --status ETMPFAIL",
            "topology rebalance-in --pause 0",
            "topology crash 0",
            "fault clear",
            "stop",
        ]
    );
    assert!(printed.contains(&"node 2".to_owned()), "{printed:?}");
}

#[test]
fn standard_output_belongs_to_the_command_behind_a_schedule() {
    let (_directory, path) = written("0s topology crash 0\n1h stop\n");
    let output = steadfast(&[
        "cluster",
        "--vbuckets",
        "16",
        "--schedule",
        path.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "sleep 1; echo hello",
    ]);
    assert_eq!(output.status, 0, "{output:?}");
    assert_eq!(output.stdout, "hello\n", "{output:?}");
    assert!(output.stderr.contains("topology crash 0"), "{output:?}");
}

#[test]
fn a_command_that_fails_ends_the_cluster_and_the_error_names_its_line() {
    let (_directory, path) = written("0s topology crash 7\n1h stop\n");
    let output = steadfast(&[
        "cluster",
        "--vbuckets",
        "16",
        "--schedule",
        path.to_str().unwrap(),
    ]);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(
        output.stderr.contains("faults.txt:1: topology crash 7: "),
        "{output:?}"
    );
}

#[test]
fn an_invalid_schedule_is_rejected_before_the_cluster_starts() {
    for (text, problem) in [
        ("0s fault clear\n5s explode\n", "faults.txt:2: "),
        ("5s fault clear\n1s stop\n", "faults.txt:2: comes before"),
        (
            "0s fault add answer --status NONSENSE",
            "\"NONSENSE\" is not a status",
        ),
    ] {
        let (_directory, path) = written(text);
        let output = steadfast(&["cluster", "--schedule", path.to_str().unwrap()]);
        assert_eq!(output.status, 2, "{output:?}");
        assert_eq!(output.stdout, "", "nothing was started");
        assert!(output.stderr.contains(problem), "{output:?}");
    }
    let output = steadfast(&["cluster", "--schedule", "/no/such/file"]);
    assert_eq!(output.status, 2, "{output:?}");
}
