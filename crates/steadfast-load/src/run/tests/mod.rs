mod lying_cluster;

use std::future::pending;
use std::time::Duration;

use super::{Settings, Target, run};
use crate::client::{Access, Steadfast};
use crate::embedded::Embedded;
use crate::faults::FaultKind;
use crate::progress::Quiet;
use crate::report::LoadReport;

/// Runs against an embedded cluster with this number of nodes.
async fn run_on(nodes: usize, settings: &Settings) -> LoadReport {
    let embedded = Embedded::start(nodes, settings.seed, settings.tls).await;
    let embedded = embedded.unwrap();
    let access = Access::embedded(&embedded);
    let client = Steadfast::connect(access, None, settings.timeout).await;
    let target = Target::Embedded(embedded);
    let report = run(settings, client.unwrap(), &target, &mut Quiet, pending()).await;
    report.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_cannot_be_played_ends_the_run_at_once_and_is_a_violation() {
    let settings = |seed| Settings {
        seed,
        duration: Duration::from_secs(40),
        concurrency: 4,
        rate: Some(400),
        timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    // A single node cannot be failed over, and the settings say that there are three.
    let first = |seed| settings(seed).schedule(0).iter().next().unwrap().1.kind;
    let seed = (0..).find(|seed| first(*seed) == FaultKind::FailOver);
    let settings = settings(seed.unwrap());
    let report = run_on(1, &settings).await;
    let text = report.to_string();
    assert!(report.duration_s < 20.0, "{text}");
    assert!(!report.holds());
    assert!(
        text.contains("the schedule cannot be played to its end")
            && text.contains("    the last node"),
        "{text}"
    );
    assert!(report.operations.ok > 10, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_trusts_the_authority_meets_a_rotated_certificate() {
    let all = Settings {
        duration: Duration::from_secs(1),
        concurrency: 8,
        rate: Some(500),
        tls: true,
        ..Settings::default()
    };
    let schedule = all.schedule(0);
    let kinds = schedule.iter().map(|(_, fault)| fault.kind);
    let others = (0..)
        .zip(kinds)
        .filter(|(_, kind)| *kind != FaultKind::RotatedCertificate);
    let settings = Settings {
        left_out: others.map(|(index, _)| index).collect(),
        ..all
    };
    let report = run_on(2, &settings).await;
    assert!(report.holds(), "{report}");
    let met = "connections met the new certificate";
    let mut coverage = report.coverage.iter().filter(|row| row.causes == met);
    assert!(coverage.next().is_some_and(|row| !row.missing), "{report}");
}
