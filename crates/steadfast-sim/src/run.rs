//! Plays a plan on its own thread.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use steadfast_load::client::{Access, Steadfast};
use steadfast_load::progress::Quiet;
use steadfast_load::{Embedded, LoadReport, Settings, Target};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::entropy::{mixed, seed_thread};
use crate::net::{Conditions, Network, SimulatedPlatform};
use crate::outcome::RunOutcome;
use crate::plan::RunPlan;

/// How much longer than planned a run may take, in virtual time.
const OVERTIME: Duration = Duration::from_secs(600);
/// How many violations an outcome keeps.
const KEPT: usize = 5;

/// Plays a plan in virtual time. A process must not play a second one: counters of the process are
/// a part of what is sent, so the second would differ from the first.
///
/// # Errors
/// If the run cannot start, does not end, or panics.
pub fn run(plan: &RunPlan) -> anyhow::Result<RunOutcome> {
    let plan = plan.clone();
    // A new thread has drawn no entropy yet.
    let thread = std::thread::Builder::new()
        .name("simulation".to_owned())
        .stack_size(16 << 20)
        .spawn(move || play(&plan))
        .context("cannot start the simulation's thread")?;
    match thread.join() {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            anyhow::bail!("the simulation panicked: {}", text.unwrap_or_default())
        }
    }
}

fn play(plan: &RunPlan) -> anyhow::Result<RunOutcome> {
    seed_thread(mixed(plan.seed));
    fastrand::seed(mixed(plan.seed ^ 1));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("cannot start the simulation's runtime")?;
    let outcome = runtime.block_on(simulate(plan));
    // Dropping tasks is not part of the run.
    std::mem::forget(runtime);
    outcome
}

async fn simulate(plan: &RunPlan) -> anyhow::Result<RunOutcome> {
    let usual = Conditions {
        latency: Duration::from_micros(plan.latency_us),
        jitter: Duration::from_micros(plan.jitter_us),
        ..Conditions::default()
    };
    let network = Network::new(mixed(plan.seed ^ 2), usual);
    let _entered = steadfast_os::enter(Arc::new(SimulatedPlatform(network.clone())));
    let started = Instant::now();
    let limit = Duration::from_millis(plan.duration_ms) + OVERTIME;
    let played = timeout(limit, load(plan, &network)).await;
    let (report, journal) = played.context("the run does not end in virtual time")??;
    let trace = network.trace();
    let json: serde_json::Value = serde_json::from_str(&report.to_json())?;
    let count = |part: &str, field: &str| json[part][field].as_u64().unwrap_or(0);
    Ok(RunOutcome {
        seed: plan.seed,
        holds: !report.is_violated(),
        unchecked: count("accounting", "unchecked"),
        trace: format!("{:016x}", trace.hash()),
        journal,
        bytes: trace.bytes,
        operations: count("operations", "operations"),
        virtual_s: started.elapsed().as_secs_f64(),
        cpu_s: cpu_time().as_secs_f64(),
        violations: violations(&json["accounting"]["violations"]),
    })
}

/// Runs the workload against a cluster on this thread.
async fn load(plan: &RunPlan, network: &Arc<Network>) -> anyhow::Result<(LoadReport, String)> {
    let settings = Settings {
        seed: plan.seed,
        duration: Duration::from_millis(plan.duration_ms),
        concurrency: plan.workers,
        rate: Some(plan.rate),
        timeout: Duration::from_millis(plan.timeout_ms),
        nodes: plan.nodes,
        tls: plan.tls,
        left_out: plan.left_out.clone(),
        neighbours: plan.network_faults.is_empty(),
        ..Settings::default()
    };
    let embedded = Embedded::start_here(plan.nodes, plan.seed, plan.tls).await?;
    let cluster = embedded.cluster().clone();
    let access = Access::embedded(&embedded);
    let client = Steadfast::connect(access, None, settings.timeout).await?;
    let target = Target::Embedded(embedded);
    let started = Instant::now();
    let mut faults = JoinSet::new();
    for fault in plan.network_faults.clone() {
        let (network, cluster) = (network.clone(), cluster.clone());
        faults.spawn(async move { fault.play(started, &network, &cluster).await });
    }
    let stop = async {
        match plan.stop_after_ms {
            Some(after) => sleep(Duration::from_millis(after)).await,
            None => std::future::pending().await,
        }
    };
    let report = steadfast_load::run(&settings, client, &target, &mut Quiet, stop).await?;
    Ok((report, journal_hash(&cluster)))
}

/// Returns a hash over the journal: what was applied, where, and in which order.
fn journal_hash(cluster: &steadfast_cluster::TestCluster) -> String {
    let mut hasher = DefaultHasher::new();
    for entry in cluster.journal().since(0) {
        hasher.write(format!("{entry:?}").as_bytes());
    }
    format!("{:016x}", hasher.finish())
}

/// Returns the texts of the first violations, certain ones before those of unchecked writes.
fn violations(all: &serde_json::Value) -> Vec<String> {
    let mut all: Vec<_> = all.as_array().into_iter().flatten().collect();
    all.sort_by_key(|violation| violation["kind"] == "unchecked");
    let first = all.into_iter().take(KEPT);
    first
        .map(|violation| {
            let of = |field: &str| violation[field].as_str().unwrap_or_default().to_owned();
            let (kind, why) = (of("kind"), of("because"));
            format!("{kind} {why}: {violation}")
        })
        .collect()
}

/// Returns the processor time of this thread.
fn cpu_time() -> Duration {
    // The thread's own time, as the scheduler counts it.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}
