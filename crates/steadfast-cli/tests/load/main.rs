//! `steadfast load`, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod starts;

use std::process::{Command, Output};

use serde_json::Value;

fn load(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .arg("load")
        .args(arguments)
        .env_remove("STEADFAST_USER")
        .env_remove("STEADFAST_PASSWORD")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

/// A file with the password of the user.
fn password() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "secret\n").unwrap();
    file
}

/// The report, of a run whose accounting holds.
#[track_caller]
fn report(output: &Output) -> Value {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_short_run_meets_every_fault_and_accounts_for_every_write() {
    let page = std::env::temp_dir().join(format!("steadfast-load-{}.html", std::process::id()));
    let output = load(&[
        "--seed=4711",
        "--duration=5s",
        "--timeout=1s",
        "--concurrency=16",
        "--rate=1500",
        "--json",
        "--quiet",
        "--html",
        page.to_str().unwrap(),
    ]);
    let report = report(&output);
    assert_eq!(report["seed"], 4711);
    let accounting = &report["accounting"];
    assert_eq!(accounting["holds"], true);
    assert_eq!(accounting["journal"], true);
    for wrong in ["lost", "applied_twice", "unexplained"] {
        assert_eq!(accounting[wrong], 0, "{wrong}");
    }
    assert!(accounting["acknowledged"].as_u64().unwrap() > 500);
    assert!(report["operations"]["ok"].as_u64().unwrap() > 1000);
    assert!(report["latency"]["p99_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(report["calamity"]["marks"].as_array().unwrap().len(), 13);
    for decided in ["retries", "refusals"] {
        let decided = report[decided].as_array().unwrap();
        assert!(decided.iter().all(|one| one["count"].as_u64() > Some(0)));
        assert!(!decided.is_empty(), "nothing went wrong");
    }
    let retries = report["retries"].as_array().unwrap();
    assert!(
        retries
            .iter()
            .all(|one| one["reason"].is_string() && one["stage"].is_string())
    );

    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    assert!(html.contains("<svg") && html.contains("Every write came to what"));
    for elsewhere in ["http:", "https:", "src=", "href=", "<script", "@import"] {
        assert!(!html.contains(elsewhere), "the page needs {elsewhere}");
    }
}

#[test]
fn against_a_cluster_of_the_users_nothing_is_broken_and_nothing_is_left_behind() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bucket = steadfast_cluster::BucketSettings::new("mine").replicas(1);
    let cluster = steadfast_cluster::TestCluster::builder()
        .nodes(2)
        .bucket(bucket)
        .user("app", "secret")
        .start();
    let cluster = runtime.block_on(cluster).unwrap();
    let address = format!("{}/mine", cluster.connection_string());
    let password = password();
    let output = load(&[
        "--connect",
        &address,
        "--user=app",
        "--password-file",
        password.path().to_str().unwrap(),
        "--duration=1s",
        "--concurrency=8",
        "--rate=1000",
        "--json",
        "--quiet",
    ]);
    let report = report(&output);
    assert_eq!(report["accounting"]["journal"], false);
    assert_eq!(report["operations"]["failed"], 0);
    assert_eq!(report["operations"]["timed_out"], 0);
    assert!(report["accounting"]["acknowledged"].as_u64().unwrap() > 100);
    let mut living = std::collections::BTreeSet::new();
    for entry in cluster.journal().since(0) {
        let key = String::from_utf8(entry.key().to_vec()).unwrap();
        if entry.opcode.to_string().starts_with("DELETE") {
            living.remove(&key);
        } else {
            living.insert(key);
        }
    }
    assert!(living.is_empty(), "{living:?}");
}

#[test]
fn a_collection_over_tls_is_reached_with_the_flags_of_the_other_commands() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bucket = steadfast_cluster::BucketSettings::new("mine").replicas(0);
    let cluster = steadfast_cluster::TestCluster::builder()
        .bucket(bucket.vbuckets(16))
        .user("app", "secret")
        .tls(true)
        .start();
    let cluster = runtime.block_on(cluster).unwrap();
    cluster.create_scope("mine", "inventory").unwrap();
    cluster
        .create_collection("mine", "inventory", "users", 0)
        .unwrap();
    let ca = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca.path(), cluster.ca_pem().unwrap()).unwrap();
    let password = password();
    let secure = cluster.tls_connection_string().unwrap();
    let output = load(&[
        "--connect",
        &format!("{secure}/mine/inventory/users"),
        "--user=app",
        "--password-file",
        password.path().to_str().unwrap(),
        "--ca",
        ca.path().to_str().unwrap(),
        "--strategy=best-effort",
        "--duration=1s",
        "--concurrency=4",
        "--rate=400",
        "--json",
        "--quiet",
    ]);
    let report = report(&output);
    assert_eq!(report["strategy"], "best-effort");
    assert!(report["operations"]["by_kind"]["select"].as_u64() > Some(0));
    let replay = report["replay"].as_str().unwrap();
    assert!(replay.contains("/mine/inventory/users --user app --password-file"));
    assert!(!replay.contains("secret"), "{replay}");
    let entries = cluster.journal().since(0);
    assert!(!entries.is_empty());
    let elsewhere = entries.iter().find(|entry| entry.collection() == 0);
    assert!(elsewhere.is_none(), "{elsewhere:?}");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_sentence() {
    for (arguments, sentence) in [
        (
            &["--duration=soon"][..],
            "a duration is a number and ms, s, m or h",
        ),
        (
            &["--strategy=hope", "--duration=1s"],
            "invalid value 'hope'",
        ),
        (&["--nodes=0", "--duration=1s"], "nodes"),
        (&["--concurrency=0"], "concurrency"),
        (&["--duration=0s"], "--duration must be more than nothing"),
        (&["--soak=0s"], "--soak must be more than nothing"),
        (&["--timeout=0s"], "--timeout"),
        (&["--user=app"], "--user is for a cluster of yours"),
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
            "--ca is for TLS",
        ),
    ] {
        let output = load(arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(sentence), "{arguments:?}: {err}");
    }
}

/// `steadfast load`, running, and interrupted.
#[cfg(unix)]
mod interrupted {
    use std::collections::BTreeSet;
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, ChildStderr, Command, Stdio};
    use std::time::Duration;

    use serde_json::Value;
    use steadfast_cluster::fault::Fault;
    use steadfast_cluster::{BucketSettings, TestCluster};
    use steadfast_wire::Opcode;

    struct Running {
        process: Child,
        errors: BufReader<ChildStderr>,
    }

    impl Running {
        fn start(arguments: &[&str]) -> Self {
            let mut process = Command::new(env!("CARGO_BIN_EXE_steadfast"))
                .arg("load")
                .args(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let errors = BufReader::new(process.stderr.take().unwrap());
            Self { process, errors }
        }

        /// Waits until standard error says this.
        fn wait_for(&mut self, text: &str) {
            let mut line = String::new();
            while self.errors.read_line(&mut line).unwrap() > 0 {
                if line.contains(text) {
                    return;
                }
                line.clear();
            }
            panic!("it ended and never said {text:?}");
        }

        fn signal(&self, name: &str) {
            let command = format!("kill -{name} {}", self.process.id());
            let sent = Command::new("sh").args(["-c", &command]).status();
            assert!(sent.unwrap().success(), "{command}");
        }

        /// Its exit status, and what it printed.
        fn end(mut self) -> (Option<i32>, String) {
            let mut printed = String::new();
            let mut stdout = self.process.stdout.take().unwrap();
            stdout.read_to_string(&mut printed).unwrap();
            (self.process.wait().unwrap().code(), printed)
        }
    }

    /// A cluster of the user's, and its address.
    async fn cluster() -> (TestCluster, String) {
        let bucket = BucketSettings::new("mine").replicas(1).vbuckets(16);
        let builder = TestCluster::builder().nodes(2).bucket(bucket);
        let cluster = builder.user("app", "secret").start().await.unwrap();
        let address = format!("{}/mine", cluster.connection_string());
        (cluster, address)
    }

    fn living(cluster: &TestCluster) -> BTreeSet<String> {
        let mut living = BTreeSet::new();
        for entry in cluster.journal().since(0) {
            let key = String::from_utf8(entry.key().to_vec()).unwrap();
            if entry.opcode == Opcode::Delete {
                living.remove(&key);
            } else {
                living.insert(key);
            }
        }
        living
    }

    #[test]
    fn a_run_in_the_middle_of_its_calamity_ends_in_order_and_is_accounted_for() {
        // Whatever is under way must come to its end: a crash, a rebalance, a new password.
        std::thread::scope(|scope| {
            for act in ["crashed", "rebalancing a node in", "rotated", "failing"] {
                scope.spawn(move || interrupt_at(act));
            }
        });
    }

    fn interrupt_at(act: &str) {
        let page = tempfile::NamedTempFile::new().unwrap();
        let mut running = Running::start(&[
            "--seed=4711",
            "--duration=20s",
            "--timeout=1s",
            "--concurrency=8",
            "--rate=400",
            "--json",
            "--html",
            page.path().to_str().unwrap(),
        ]);
        running.wait_for(act);
        running.signal("INT");
        let (status, printed) = running.end();
        assert_eq!(status, Some(130), "{act}: {printed}");
        let report: Value = serde_json::from_str(&printed).unwrap();
        let after = report["interrupted_after_s"].as_f64().unwrap();
        assert!(after < 20.0, "{act}: {after}");
        let accounting = &report["accounting"];
        assert_eq!(accounting["holds"], true, "{act}: {accounting}");
        assert!(accounting["acknowledged"].as_u64().unwrap() > 10);
        for mark in report["calamity"]["marks"].as_array().unwrap() {
            assert!(mark["until_s"].is_f64(), "{act}: {mark}");
        }
        let html = std::fs::read_to_string(page.path()).unwrap();
        assert!(html.contains("Interrupted after"), "{act}");
    }

    #[test]
    fn against_a_cluster_of_the_users_nothing_is_left_behind() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (cluster, address) = runtime.block_on(cluster());
        let password = super::password();
        let mut running = Running::start(&[
            "--connect",
            &address,
            "--user=app",
            "--password-file",
            password.path().to_str().unwrap(),
            "--duration=60s",
            "--concurrency=8",
            "--rate=1000",
        ]);
        running.wait_for("op/s");
        while living(&cluster).len() < 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal("TERM");
        let (status, printed) = running.end();
        assert_eq!(status, Some(143), "{printed}");
        assert!(printed.contains("interrupted     after"), "{printed}");
        assert!(printed.contains("of 60 s"), "{printed}");
        assert!(printed.contains("unexplained 0     ✔"), "{printed}");
        assert_eq!(living(&cluster), BTreeSet::new());
    }

    #[test]
    fn a_second_signal_ends_it_at_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (cluster, address) = runtime.block_on(cluster());
        let password = super::password();
        let long = Duration::from_secs(600);
        let _slow = cluster.fault(Fault::on(Opcode::Set).delay(long));
        let mut running = Running::start(&[
            "--connect",
            &address,
            "--user=app",
            "--password-file",
            password.path().to_str().unwrap(),
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
