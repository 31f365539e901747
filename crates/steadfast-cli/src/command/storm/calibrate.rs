//! Calibration of a scenario from a report of `steadfast load`.

use std::path::Path;

use serde::Deserialize;
use steadfast_storm::{Arrivals, Distribution, Scenario};

use crate::exit::usage;

/// The quantile of the standard normal distribution at 99 %.
const Z_99: f64 = 2.326;

/// The parts of a load report that a scenario needs.
#[derive(Deserialize)]
struct LoadReport {
    concurrency: u32,
    throughput_per_s: f64,
    latency: Latency,
}

#[derive(Deserialize)]
struct Latency {
    p50_ms: f64,
    p99_ms: f64,
}

/// Replaces rate and service times by those of a load report. The service times are
/// log-normal, with the report's median and 99th percentile. The load had as many operations
/// under way as its concurrency, so the service has at least as many workers.
pub(super) fn calibrate(scenario: &mut Scenario, path: &Path) -> anyhow::Result<()> {
    let invalid =
        |problem: &dyn std::fmt::Display| usage(format_args!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| invalid(&error))?;
    let report: LoadReport = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
    let Latency { p50_ms, p99_ms } = report.latency;
    if !(p50_ms > 0.0 && p99_ms >= p50_ms && report.throughput_per_s > 0.0) {
        return Err(invalid(&"the load has no latencies or no throughput"));
    }
    let sigma = (p99_ms / p50_ms).ln() / Z_99;
    let mean = p50_ms / 1000.0 * (sigma * sigma / 2.0).exp();
    scenario.arrivals = Arrivals::Open(report.throughput_per_s);
    scenario.service.service_time = Distribution::LogNormal { mean, sigma };
    let busy = report.throughput_per_s * mean;
    scenario.service.workers = report.concurrency.max((busy / 0.9).ceil() as u32).max(1);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_gives_the_rate_and_the_service_times() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let report = r#"{ "format": 1, "concurrency": 16, "throughput_per_s": 800.0,
            "latency": { "p50_ms": 2.0, "p99_ms": 20.0, "max_ms": 90.0 } }"#;
        std::io::Write::write_all(&mut file, report.as_bytes()).unwrap();
        let mut scenario = Scenario::default();
        calibrate(&mut scenario, file.path()).unwrap();
        assert_eq!(scenario.arrivals, Arrivals::Open(800.0));
        assert_eq!(scenario.service.workers, 16);
        let mean = scenario.service.service_time.mean();
        assert!((mean - 0.00326).abs() < 0.0001, "{mean}");
    }
}
