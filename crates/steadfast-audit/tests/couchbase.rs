//! Our own client, through its driver, and drivers that misbehave.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::ffi::OsString;

use steadfast_audit::AuditError;
use steadfast_audit::couchbase::{SdkAuditReport, SdkAuditSettings, SdkRating, audit_couchbase};

async fn audit(command: &[&str], only: &[&str]) -> Result<SdkAuditReport, AuditError> {
    let settings = SdkAuditSettings {
        command: command.iter().map(OsString::from).collect(),
        only: only.iter().map(|part| (*part).to_owned()).collect(),
    };
    audit_couchbase(&settings, |_| {}).await
}

/// Returns the driver of our client. Cargo builds the examples of a crate with its tests, in the
/// folder next to them.
fn our_driver() -> String {
    let tests = std::env::current_exe().unwrap();
    let target = tests.ancestors().nth(2).unwrap();
    let driver = target.join("examples").join("couchbase_driver");
    assert!(
        driver.exists(),
        "build it: cargo build -p steadfast-audit --examples"
    );
    driver.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn our_client_conforms_in_every_case() {
    let report = audit(&[&our_driver()], &[]).await.unwrap();
    assert!(report.sdk.starts_with("Steadfast "), "{}", report.sdk);
    assert_eq!(
        report.count(SdkRating::Conforms),
        report.cases.len(),
        "{report}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_repeats_writes_is_unsafe() {
    let parts = ["increment: cut after", "upsert: cut before applying"];
    let report = audit(&[&our_driver(), "repeat"], &parts).await.unwrap();
    assert_eq!(report.count(SdkRating::Unsafe), 2, "{report}");
    assert!(report.to_string().contains("applied 2 times"), "{report}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_misbehaves_is_named() {
    for (script, problem) in [
        ("exit 3", "ended, asked for connect"),
        ("echo hello; sleep 60", "answered with something else"),
        ("echo 'no module couchbase' >&2", "no module couchbase"),
        (
            "read line; echo '{\"id\": 1, \"error\": \"bad login\"}'; sleep 60",
            "bad login",
        ),
    ] {
        let error = audit(&["sh", "-c", script], &["get: cut mid"])
            .await
            .unwrap_err();
        assert!(error.to_string().contains(problem), "{script}: {error}");
    }
}

/// A driver without an SDK: it says that every operation succeeded.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_arrive_is_not_judged() {
    let script = r#"n=0; while read line; do n=$((n+1)); echo "{\"id\": $n, \"ok\": true}"; done"#;
    let report = audit(&["sh", "-c", script], &["get: cut mid"])
        .await
        .unwrap();
    assert_eq!(report.count(SdkRating::NotSeen), 1, "{report}");
}
