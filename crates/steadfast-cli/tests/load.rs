//! `steadfast load`, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::{Command, Output};

use serde_json::Value;

fn load(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .arg("load")
        .args(arguments)
        .output()
        .unwrap()
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
    let cluster = steadfast_cluster::Cluster::builder()
        .nodes(2)
        .bucket(bucket)
        .user("app", "secret")
        .start();
    let cluster = runtime.block_on(cluster).unwrap();
    let address = cluster.connection_string();
    let output = load(&[
        "--connect",
        &address,
        "--bucket=mine",
        "--user=app",
        "--password=secret",
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
fn what_makes_no_sense_is_refused_with_a_sentence() {
    for (arguments, sentence) in [
        (
            &["--duration=soon"][..],
            "a duration is a number and ms, s, m or h",
        ),
        (
            &["--strategy=hope", "--duration=1s"],
            "there is no strategy",
        ),
        (&["--nodes=0", "--duration=1s"], "nodes"),
        (&["--concurrency=0"], "concurrency"),
    ] {
        let output = load(arguments);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(err.contains(sentence), "{arguments:?}: {err}");
    }
}
