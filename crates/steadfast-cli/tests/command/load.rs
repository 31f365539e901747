//! `steadfast load`: flags, start-up errors, signals, exit statuses.

use serde_json::Value;

use crate::support::{Output, Served, steadfast};

/// Options of a short run.
const SHORT: [&str; 5] = [
    "--duration=100ms",
    "--concurrency=4",
    "--rate=400",
    "--json",
    "--quiet",
];

/// Parses the report of a successful run.
#[track_caller]
fn report(output: &Output) -> Value {
    assert!(output.ok(), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

fn three_nodes() -> Served {
    Served::start(|builder| builder.nodes(3))
}

#[test]
fn without_an_address_an_embedded_cluster_is_used_and_faults_are_injected() {
    let output = steadfast(&[
        "load",
        "--seed=4711",
        "--duration=2s",
        "--timeout=1s",
        "--concurrency=8",
        "--rate=800",
        "--json",
        "--quiet",
    ]);
    let report = report(&output);
    assert_eq!(report["accounting"]["holds"], true);
    assert_eq!(report["accounting"]["journal"], true);
    assert!(report["accounting"]["acknowledged"].as_u64() > Some(100));
    let injected = report["faults"]["injected"].as_array().unwrap();
    assert!(!injected.is_empty(), "{report}");
    let replay = report["replay"].as_str().unwrap();
    assert!(
        replay.starts_with("steadfast load --seed 4711 --duration 2s"),
        "{replay}"
    );
}

#[test]
fn a_collection_over_tls_is_reached_with_the_flags_of_other_commands() {
    let served = Served::start(|builder| builder.tls(true));
    let cluster = served.cluster();
    cluster.create_scope("travel", "inventory").unwrap();
    cluster
        .create_collection("travel", "inventory", "users", 0)
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (ca, password) = (
        file("ca.pem", cluster.ca_pem().unwrap()),
        file("password", "secret\n"),
    );
    let page = file("page.html", "");
    let secure = cluster.tls_connection_string().unwrap();
    let output = steadfast(&[
        "load",
        "--connect",
        &format!("{secure}/travel/inventory/users"),
        "--user=app",
        "--password-file",
        &password,
        "--ca",
        &ca,
        "--strategy=best-effort",
        "--duration=1s",
        "--concurrency=4",
        "--rate=400",
        "--json",
        "--quiet",
        "--html",
        &page,
    ]);
    let report = report(&output);
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("<svg"), "{html}");
    assert_eq!(report["strategy"], "best-effort");
    assert!(report["operations"]["by_kind"]["select"].as_u64() > Some(0));
    let replay = report["replay"].as_str().unwrap();
    assert!(replay.contains("/travel/inventory/users --user app --password-file"));
    assert!(!replay.contains("secret"), "{replay}");
    let entries = cluster.journal().since(0);
    assert!(!entries.is_empty());
    let elsewhere = entries.iter().find(|entry| entry.collection() == 0);
    assert!(elsewhere.is_none(), "{elsewhere:?}");
}

#[test]
fn invalid_flags_are_rejected_with_an_explanation() {
    for (arguments, explanation) in [
        (
            &["--duration=soon"][..],
            "must be a number with ms, s, m or h",
        ),
        (
            &["--strategy=hope", "--duration=1s"],
            "invalid value 'hope'",
        ),
        (&["--nodes=0", "--duration=1s"], "nodes"),
        (&["--concurrency=0"], "concurrency"),
        (&["--duration=0s"], "must be above 0"),
        (&["--soak=0s"], "must be above 0"),
        (&["--timeout=0s"], "--timeout"),
        (&["--user=app"], "--user needs an existing cluster"),
        (
            &["--connect=couchbase://127.0.0.1/b", "--user=app"],
            "no password: give --password-file",
        ),
        (
            &[
                "--connect=couchbase://127.0.0.1/b",
                "--user=app",
                "--ca=ca.pem",
                "--password-file=Cargo.toml",
            ],
            "--ca needs TLS",
        ),
    ] {
        let output = steadfast(&[&["load"], arguments].concat());
        assert_eq!(output.status, 2, "{arguments:?}: {output:?}");
        assert!(
            output.stderr.contains(explanation),
            "{arguments:?}: {output:?}"
        );
    }
}

#[test]
fn reports_of_several_machines_are_merged_and_equal_seeds_are_refused() {
    let served = three_nodes();
    let address = served.address("travel");
    let directory = tempfile::tempdir().unwrap();
    let file = |seed: &str| {
        let run = ["load", "--connect", &address, "--no-query", "--seed", seed];
        let output = served.run(&[&run, &SHORT[..]].concat());
        let replay = report(&output)["replay"].as_str().unwrap().to_owned();
        assert!(replay.contains("--no-query --seed"), "{replay}");
        assert!(report(&output)["operations"]["by_kind"]["select"].is_null());
        let path = directory.path().join(seed);
        std::fs::write(&path, &output.stdout).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (one, two) = (file("1"), file("2"));
    let merged = report(&steadfast(&["load", "merge", &one, &two]));
    // 40 operations in 100 ms, on each of two machines.
    assert_eq!(merged["starts"]["intended"], 80);
    assert_eq!(merged["runs"][1]["seed"], 2);
    let twice = steadfast(&["load", "merge", &one, &two, &one]);
    assert_eq!(twice.status, 2, "{twice:?}");
    assert!(twice.stderr.contains("repeats the seed 1"), "{twice:?}");
    let missing = steadfast(&["load", "merge", &one, "/nowhere"]);
    assert_eq!(missing.status, 2, "{missing:?}");
}

#[test]
fn a_missing_collection_is_reported_before_the_run_like_by_other_commands() {
    let served = three_nodes();
    for (path, advice) in [
        ("s/c", "create the scope"),
        ("_default/nope", "create the collection"),
    ] {
        let address = served.address(&format!("travel/{path}"));
        // Also with a strategy that would wait for it.
        let output = served.run(&["load", "--connect", &address, "--strategy=best-effort"]);
        assert_eq!(output.status, 1, "{output:?}");
        let header = &output.stdout;
        assert!(header.contains(&format!("/travel/{path} ")), "{header}");
        assert_eq!(header.lines().count(), 1, "it ran: {header}");
        let problem = without_numbers(&output);
        let advice = format!("  → {advice}");
        assert!(
            problem.iter().any(|line| line.starts_with(&advice)),
            "{problem:?}"
        );
        let get = served.run(&["get", &address, "k"]);
        assert_eq!(problem, without_numbers(&get), "not what `get` reports");
    }
    assert!(served.cluster().journal().since(0).is_empty(), "it ran");
}

/// Returns the lines of an error without numbers of attempts and times.
fn without_numbers(output: &Output) -> Vec<String> {
    let lines = output.stderr.lines();
    lines
        .map(|line| match line.split_once(" attempt") {
            Some((text, _)) => text.trim_end_matches(char::is_numeric).to_owned(),
            None => line.to_owned(),
        })
        .collect()
}

#[test]
fn start_up_errors_are_reported_once_with_cause_and_advice() {
    let served = three_nodes();
    let unreachable = "couchbase://127.0.0.1:1/travel?connect_timeout=500ms".to_owned();
    let bucket = served.address("travel");
    for (password, address, texts) in [
        (
            "secret",
            unreachable,
            &[
                "timed out after 0.5",
                "127.0.0.1:1: Connection refused",
                "  → run `steadfast doctor`",
            ][..],
        ),
        ("wrong", bucket, &["refused these credentials"]),
        (
            "secret",
            served.address("yours"),
            &["has no bucket \"yours\""],
        ),
    ] {
        let run = ["load", "--connect", &address];
        let output = served.run_as(password, &run);
        assert_eq!(output.status, 1, "{output:?}");
        for text in texts {
            assert_eq!(output.stderr.matches(text).count(), 1, "{text}: {output:?}");
        }
    }
}

#[cfg(unix)]
mod signals {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, ChildStderr, Command, Stdio};
    use std::time::Duration;

    use steadfast_cluster::fault::Fault;
    use steadfast_cluster::{BucketSettings, TestCluster};
    use steadfast_wire::Opcode;

    use crate::support::{Served, command};

    /// A running `steadfast load`.
    struct RunningLoad {
        process: Child,
        errors: BufReader<ChildStderr>,
    }

    impl RunningLoad {
        fn start(arguments: &[&str]) -> Self {
            let mut process = command(&["load"])
                .args(arguments)
                .env("STEADFAST_USER", "app")
                .env("STEADFAST_PASSWORD", "secret")
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let errors = BufReader::new(process.stderr.take().unwrap());
            Self { process, errors }
        }

        /// Waits for this text on standard error.
        fn wait_for(&mut self, text: &str) {
            let mut lines = self.errors.by_ref().lines().map(Result::unwrap);
            let found = lines.any(|line| line.contains(text));
            assert!(found, "it ended without {text:?}");
        }

        fn signal(&self, name: &str) {
            let id = self.process.id().to_string();
            let sent = Command::new("kill").args(["-s", name, &id]).status();
            assert!(sent.unwrap().success());
        }

        /// Waits for the end; returns the exit status and standard output.
        fn end(mut self) -> (Option<i32>, String) {
            let mut printed = String::new();
            let mut stdout = self.process.stdout.take().unwrap();
            stdout.read_to_string(&mut printed).unwrap();
            (self.process.wait().unwrap().code(), printed)
        }
    }

    fn existing_keys(cluster: &TestCluster) -> BTreeSet<Vec<u8>> {
        let mut keys = BTreeSet::new();
        for entry in cluster.journal().since(0) {
            if entry.opcode == Opcode::Delete {
                keys.remove(entry.key());
            } else {
                keys.insert(entry.key().to_vec());
            }
        }
        keys
    }

    #[test]
    fn the_first_signal_ends_the_run_in_order_and_determines_the_exit_status() {
        let served = Served::start(|builder| {
            let bucket = BucketSettings::new("replicated").replicas(1);
            builder.nodes(2).bucket(bucket.vbuckets(16))
        });
        let address = served.address("replicated");
        let (existing, embedded) = (&["--connect", &*address][..], &["--timeout=1s"][..]);
        for (target, signal, expected) in [
            (existing, "INT", 130),
            (existing, "TERM", 143),
            (embedded, "INT", 130),
            (embedded, "TERM", 143),
        ] {
            let options = ["--duration=60s", "--concurrency=8", "--rate=1000"];
            let mut running = RunningLoad::start(&[target, &options].concat());
            running.wait_for("op/s");
            while target == existing && existing_keys(served.cluster()).len() < 20 {
                std::thread::sleep(Duration::from_millis(5));
            }
            running.signal(signal);
            let (status, printed) = running.end();
            let case = format!("{target:?}, {signal}: {printed}");
            assert_eq!(status, Some(expected), "{case}");
            assert!(printed.contains("interrupted     after"), "{case}");
            assert!(printed.contains("of 60 s"), "{case}");
            assert!(
                printed.contains("✔ lost 0 · applied twice 0 · unexplained 0"),
                "{case}"
            );
            assert_eq!(existing_keys(served.cluster()), BTreeSet::new(), "{case}");
        }
    }

    #[test]
    fn a_second_signal_ends_the_run_at_once() {
        let served = Served::start(|builder| builder.nodes(2));
        let slow = Fault::on(Opcode::Set).delay(Duration::from_secs(600));
        let _slow = served.cluster().fault(slow);
        let mut running = RunningLoad::start(&[
            "--connect",
            &served.address("travel"),
            "--duration=600s",
            "--timeout=600s",
            "--concurrency=8",
            "--seed=42",
        ]);
        running.wait_for("op/s");
        running.signal("INT");
        running.wait_for("interrupted: ");
        running.signal("TERM");
        running.wait_for("documents whose keys start with steadfast:load:2a: may be left");
        let (status, printed) = running.end();
        assert_eq!(status, Some(143), "{printed}");
        assert!(!printed.contains("accounting"), "{printed}");
    }
}

#[test]
fn expectations_decide_about_the_status_of_a_run_that_holds() {
    let served = three_nodes();
    let address = served.address("travel");
    // No faults are injected there, so a run ends after its duration.
    let short = |expected: &[&str]| {
        let run = ["load", "--connect", &address, "--duration=300ms", "--quiet"];
        served.run(&[&run[..], expected].concat())
    };
    let output = short(&["--expect", "p99<1000s", "--expect", "throughput>1"]);
    assert!(output.ok(), "{output:?}");
    let output = short(&["--expect", "p50<1us", "--expect", "max<1000s"]);
    assert_eq!(output.status, 6, "{output:?}");
    assert!(
        output.stderr.contains("expected p50<1us, measured"),
        "{output:?}"
    );
    assert!(!output.stderr.contains("max"), "{output:?}");
    // The printed command repeats the expectations.
    assert!(output.stdout.contains("--expect 'p50<1us'"), "{output:?}");
}

/// A run adds a node, which a full cluster refuses.
#[test]
fn a_cluster_that_cannot_take_another_node_is_a_usage_error() {
    for (nodes, text) in [("128", "at most 127"), ("129", "not 129"), ("0", "not 0")] {
        let output = steadfast(&["load", "--duration", "1s", "--nodes", nodes]);
        assert_eq!(output.status, 2, "{output:?}");
        assert!(output.stderr.contains(text), "{output:?}");
    }
}
