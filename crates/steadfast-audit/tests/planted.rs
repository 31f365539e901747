//! Clients with known faults, each rated as it deserves.
//!
//! The clients are in this binary: an ignored test is a program that sends one request, and the
//! audit runs it by its name.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[path = "planted/client/mod.rs"]
mod client;
#[path = "planted/commands.rs"]
#[cfg(unix)]
mod commands;

use std::ffi::OsString;
use std::time::Duration;

use client::{Failed, Policy};
use steadfast_audit::cases::FAULTS;
use steadfast_audit::{
    AuditProtocol, AuditReport, AuditSettings, DemandResult, Rating, SafetyDemand, audit_http,
};

/// Returns the command that runs an ignored test of this binary: a client.
fn command(client: &str) -> Vec<OsString> {
    let binary = std::env::current_exe().unwrap();
    let mut command: Vec<OsString> = vec![binary.into()];
    command.extend(["--ignored", "--exact", client].map(OsString::from));
    command
}

async fn audit(client: &str, only: &[&str]) -> AuditReport {
    audit_over(AuditProtocol::default(), client, only).await
}

async fn audit_over(protocol: AuditProtocol, client: &str, only: &[&str]) -> AuditReport {
    let settings = AuditSettings {
        protocol,
        only: only.iter().map(|part| (*part).to_owned()).collect(),
        limit: Duration::from_secs(40),
        // The cases wait more than they work.
        jobs: 128,
        ..AuditSettings::new(command(client))
    };
    audit_http(&settings, |_| {}).await.unwrap()
}

/// Asserts that the cases with these parts in their names have a rating.
#[track_caller]
fn assert_rated(report: &AuditReport, parts: &[&str], rating: Rating) {
    for part in parts {
        let mut cases = report
            .cases
            .iter()
            .filter(|case| case.id.contains(part))
            .peekable();
        assert!(cases.peek().is_some(), "no case has a name with {part}");
        for case in cases {
            assert_eq!(case.rating, rating, "{}: {}", case.id, case.reason);
        }
    }
}

#[tokio::test]
async fn a_client_that_repeats_everything_is_unsafe() {
    let parts = [
        "post/closed/",
        "post/reset/",
        "post/500/",
        "post/cut/",
        "post-key/closed/",
    ];
    let report = audit("client_that_repeats_everything", &parts).await;
    assert_rated(&report, &parts[..4], Rating::Unsafe);
    assert_rated(&report, &parts[4..], Rating::Good);
    assert!(
        report.to_string().contains("such as a payment? YES."),
        "{report}"
    );
    assert_eq!(SafetyDemand::Safe.check(&report), DemandResult::Broken(12));
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_that_repeats_everything() {
    client::run(&Policy {
        retries: |_, _| true,
        ..Policy::default()
    });
}

#[tokio::test]
async fn a_client_without_backoff_is_a_storm() {
    let report = audit(
        "client_without_backoff",
        &["get/503/always", "get/reset/always"],
    )
    .await;
    assert_rated(&report, &["get/"], Rating::Storm);
    assert_eq!(SafetyDemand::Calm.check(&report), DemandResult::Broken(2));
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_without_backoff() {
    let wait = |_, _: &Failed, _| Some(Duration::ZERO);
    client::run(&Policy {
        wait,
        attempts: 30,
        ..Policy::default()
    });
}

#[tokio::test]
async fn a_client_that_ignores_retry_after_is_rude() {
    let parts = [
        "get/429-after-2/",
        "get/503-after-date/",
        "get/503-after-twice/",
    ];
    let report = audit("client_that_ignores_retry_after", &parts).await;
    assert_rated(&report, &parts, Rating::Rude);
    assert_eq!(SafetyDemand::Polite.check(&report), DemandResult::Broken(3));
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_that_ignores_retry_after() {
    let wait = |attempt, _: &Failed, jitter| Some(client::backoff(attempt, jitter));
    client::run(&Policy {
        wait,
        ..Policy::default()
    });
}

#[tokio::test]
async fn a_client_without_retries_gives_up_early() {
    let parts = [
        "get/closed/once",
        "put/503/once",
        "post/429/once",
        "post/refused/",
        "post/closed/once",
    ];
    let report = audit("client_without_retries", &parts).await;
    assert_rated(&report, &parts[..4], Rating::GivesUpEarly);
    assert_rated(&report, &parts[4..], Rating::Good);
    assert_eq!(SafetyDemand::Safe.check(&report), DemandResult::Met);
    assert_eq!(SafetyDemand::Good.check(&report), DemandResult::Broken(4));
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_without_retries() {
    client::run(&Policy {
        retries: |_, _| false,
        ..Policy::default()
    });
}

#[tokio::test]
async fn a_good_client_is_good_in_every_case() {
    // Those without a response need a client with a short timeout, below.
    let faults = FAULTS.iter().copied().flatten();
    let parts: Vec<String> = faults
        .filter(|fault| fault.id != "silent")
        .map(|fault| format!("/{}/", fault.id))
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let report = audit("good_client", &parts).await;
    assert_rated(&report, &[""], Rating::Good);
    assert!(report.cases.len() > 200, "{}", report.cases.len());
    assert!(report.unseen.is_empty(), "{:?}", report.unseen);
    assert_eq!(SafetyDemand::Good.check(&report), DemandResult::Met);
    assert!(
        report.to_string().contains("such as a payment? NO"),
        "{report}"
    );
    let page = report.to_html();
    assert!(
        page.contains("<svg") && page.contains("post-key/closed/once"),
        "{page}"
    );
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["cases"][0]["rating"], "good");
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn good_client() {
    client::run(&Policy::default());
}

#[tokio::test]
async fn a_good_client_is_good_without_a_response() {
    let report = audit("good_client_with_a_timeout", &["/silent/"]).await;
    assert_rated(&report, &["/silent/"], Rating::Good);
    assert_eq!(report.cases.len(), 12);
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn good_client_with_a_timeout() {
    client::run(&Policy {
        timeout: Duration::from_millis(400),
        ..Policy::default()
    });
}

const HTTP2: AuditProtocol = AuditProtocol {
    http2: true,
    tls: false,
};

/// Every way in which TLS ends a connection, and one case of each other kind.
#[tokio::test]
async fn a_good_client_is_good_with_tls() {
    let parts = [
        "/handshake/",
        "/closed/once",
        "/reset/once",
        "/cut/once",
        "post/early/",
        "post/307-closed/",
    ];
    let tls = AuditProtocol {
        http2: false,
        tls: true,
    };
    let report = audit_over(tls, "good_client", &parts).await;
    assert_rated(&report, &parts, Rating::Good);
    let both = AuditProtocol {
        http2: true,
        tls: true,
    };
    let parts = ["/handshake/once", "post/goaway/once", "/closed/once"];
    let report = audit_over(both, "good_client_for_http2", &parts).await;
    assert_rated(&report, &parts, Rating::Good);
}

/// Every case that only HTTP/2 has, and those in which its server does something of its own.
#[tokio::test]
async fn a_good_client_is_good_with_http2() {
    let parts = [
        "/refused-stream/",
        "/goaway/",
        "/goaway-late/",
        "/reset-stream/",
        "/closed/once",
        "/reset/once",
        "/cut/once",
        "/503/once",
        "post/early/",
        "post/303-here/",
        "post/307-closed/",
        "get/drip/",
    ];
    let report = audit_over(HTTP2, "good_client_for_http2", &parts).await;
    assert_rated(&report, &parts, Rating::Good);
    assert_eq!(SafetyDemand::Good.check(&report), DemandResult::Met);
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn good_client_for_http2() {
    client::run(&Policy {
        http2: true,
        ..Policy::default()
    });
}

#[tokio::test]
async fn a_client_that_repeats_everything_is_unsafe_with_http2() {
    let parts = [
        "post/goaway-late/",
        "post/reset-stream/",
        "post/refused-stream/",
        "post/goaway/",
    ];
    let report = audit_over(HTTP2, "client_that_repeats_everything_with_http2", &parts).await;
    assert_rated(&report, &parts[..2], Rating::Unsafe);
    assert_rated(&report, &parts[2..], Rating::Good);
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_that_repeats_everything_with_http2() {
    client::run(&Policy {
        http2: true,
        retries: |_, _| true,
        ..Policy::default()
    });
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_process_that_sends_the_request_again_is_part_of_the_client() {
    let report = audit("client_that_leaves_a_retry", &["post/closed/once"]).await;
    assert_rated(&report, &["post/closed/once"], Rating::Unsafe);
}

/// Starts a process that sends the request again, and exits.
#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_that_leaves_a_retry() {
    let request = &["--ignored", "--exact", "client_without_retries"];
    let binary = std::env::current_exe().unwrap();
    let first = std::process::Command::new(&binary)
        .args(request)
        .status()
        .unwrap();
    if !first.success() {
        let again = format!("sleep 0.5; exec {} {}", binary.display(), request.join(" "));
        let mut left = std::process::Command::new("setsid");
        drop(left.args(["sh", "-c", &again]).spawn().unwrap());
    }
}

#[tokio::test]
async fn a_redirect_that_says_the_post_was_applied_is_not_followed_with_a_post() {
    let report = audit(
        "client_that_repeats_everything",
        &["post/303-here/", "get/303-here/"],
    )
    .await;
    assert_rated(&report, &["post/"], Rating::Unsafe);
    assert_rated(&report, &["get/"], Rating::Good);
}

#[tokio::test]
async fn a_client_that_sends_no_post_is_not_called_safe() {
    let report = audit("client_for_get", &["closed/once"]).await;
    assert_rated(&report, &["get/"], Rating::Good);
    assert!(
        report.to_string().contains("such as a payment? NOT KNOWN"),
        "{report}"
    );
    assert!(matches!(
        SafetyDemand::Safe.check(&report),
        DemandResult::Unknown(_)
    ));
    let parts: Vec<&str> = report.unseen.iter().map(|unseen| &*unseen.part).collect();
    assert_eq!(parts, ["PUT", "POST", "POST with an Idempotency-Key"]);
}

#[test]
#[ignore = "the tests run it as a client, in a process of its own"]
fn client_for_get() {
    client::run(&Policy {
        method: Some("GET"),
        ..Policy::default()
    });
}
