//! Runs the cases, one after the other, against a cluster in this process.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use steadfast_cluster::fault::{Fault, FaultGuard};
use steadfast_cluster::script::{Script, ScriptGuard, ScriptSpec};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{BucketSettings, Service, TestCluster};
use steadfast_wire::error_map::ErrorMap;
use steadfast_wire::{Feature, Opcode, Status};
use tokio::time::sleep;

use super::cases::{ConnectChange, SdkCase, SdkCases, SdkFault, VbucketMove};
use super::driver::{Driver, DriverAnswer};
use super::judge::SdkRun;
use super::report::{SdkAuditReport, SdkCaseReport};
use crate::command::CommandTemplate;
use crate::run::{AuditError, AuditProgress};

const BUCKET: &str = "default";
const USER: (&str, &str) = ("auditor", "password");
/// How long a driver may take to start and to connect.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after its timeout an operation may go on.
const GRACE: Duration = Duration::from_secs(8);
/// How often arrivals are counted.
const PERIOD: Duration = Duration::from_millis(1);
/// How long after its first request a planned move is made. A client that asks the old node again
/// does so earlier.
const MOVE_AFTER: Duration = Duration::from_millis(300);
/// With these features, the cluster announces a move.
const ANNOUNCEMENTS: [Feature; 2] = [
    Feature::ClustermapChangeNotification,
    Feature::ClustermapChangeNotificationBrief,
];

/// What to audit.
#[derive(Clone, Debug)]
pub struct SdkAuditSettings {
    /// The driver, its program first.
    pub command: Vec<OsString>,
    /// Parts of the titles of cases; without any, all cases run.
    pub only: Vec<String>,
}

/// Audits a Couchbase SDK.
///
/// Dropping the future kills the driver.
///
/// # Errors
/// If the driver cannot be started, or cannot connect to a cluster without faults.
pub async fn audit_couchbase(
    settings: &SdkAuditSettings,
    progress: impl Fn(AuditProgress),
) -> Result<SdkAuditReport, AuditError> {
    let template = CommandTemplate::new(settings.command.clone()).ok_or(AuditError::NoCommand)?;
    let (error_map, cases) = SdkCases::load().list();
    let wanted = |case: &SdkCase| {
        settings.only.is_empty() || settings.only.iter().any(|part| case.title().contains(part))
    };
    let cases: Vec<SdkCase> = cases.into_iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(AuditError::NoCase {
            only: settings.only.join(", "),
        });
    }
    progress(AuditProgress { done: 0, total: 0 });
    let cluster = start(&error_map).await?;
    let mut driver = Driver::start(&template)?;
    let mut sdk = String::new();
    let mut reports = Vec::with_capacity(cases.len());
    for (number, case) in cases.iter().enumerate() {
        let unannounced = matches!(case.fault, SdkFault::Move(VbucketMove::Unannounced));
        for feature in ANNOUNCEMENTS {
            cluster.withhold_feature(feature, unannounced);
        }
        // A connection with faults is made for its case.
        if !matches!(case.fault, SdkFault::Connect(_)) || sdk.is_empty() {
            let answer = driver
                .ask("connect", connection(&cluster), PATIENCE)
                .await?;
            if !answer.ok {
                let error = answer.error.unwrap_or_default();
                return Err(AuditError::Driver {
                    problem: format!("cannot connect to a cluster without faults: {error}"),
                    output: String::new(),
                });
            }
            sdk = answer.sdk.unwrap_or(sdk);
        }
        let (run, lost) = run(&cluster, &mut driver, case, number).await?;
        if lost {
            driver = Driver::start(&template)?;
        }
        let report = SdkCaseReport::new(case, &run);
        reports.push(report);
        progress(AuditProgress {
            done: reports.len(),
            total: cases.len(),
        });
    }
    drop(driver);
    template.sweep();
    cluster.stop().await;
    Ok(SdkAuditReport {
        format: 1,
        sdk,
        cases: reports,
    })
}

async fn start(error_map: &Value) -> Result<TestCluster, AuditError> {
    let builder = TestCluster::builder()
        .nodes(2)
        .bucket(BucketSettings::new(BUCKET).vbuckets(64))
        .bucket(BucketSettings::new("other").vbuckets(16))
        .user(USER.0, USER.1)
        .user_with_rights("stranger", USER.1, Rights::buckets(["other".to_owned()]))
        .tls(true);
    let cluster = builder.start().await.map_err(AuditError::Cluster)?;
    let map = ErrorMap::parse(error_map.to_string().as_bytes()).expect("a test reads the map");
    for (code, definition) in map.errors {
        cluster.error_map().set(code, definition);
    }
    Ok(cluster)
}

fn connection(cluster: &TestCluster) -> Value {
    json!({
        "connection_string": cluster.connection_string(),
        "username": USER.0,
        "password": USER.1,
        "bucket": BUCKET,
        "timeout_ms": 20_000,
    })
}

/// A fault in force.
enum InForce {
    Rule(FaultGuard),
    Script(ScriptGuard),
}

impl InForce {
    fn begin(cluster: &TestCluster, case: &SdkCase, key: &str) -> Self {
        match &case.fault {
            // It is in force already; the requests of the operation are counted.
            SdkFault::Connect(_) | SdkFault::Move(_) => {
                let count = json!({"effect": "pass", "key": key});
                let count = serde_json::from_value(count).expect("it is valid");
                Self::Rule(cluster.fault(count))
            }
            SdkFault::Rule(rule) => {
                let mut rule = rule.clone();
                // By the key alone: SDKs send different commands for the same operation.
                if !case.is_query() {
                    rule["key"] = json!(key);
                }
                let fault: Fault = serde_json::from_value(rule).expect("a test reads the rules");
                Self::Rule(cluster.fault(fault))
            }
            SdkFault::Script(script) => {
                let spec = serde_json::from_value::<ScriptSpec>(script.clone());
                let script = Script::try_from(spec.expect("a test reads the scripts"));
                Self::Script(cluster.script(script.expect("a test reads the scripts")))
            }
        }
    }

    /// Returns how many requests arrived, and how many of them were hit.
    fn counts(&self) -> (u64, u64) {
        match self {
            Self::Rule(guard) => (guard.seen(), guard.fired()),
            Self::Script(guard) => (guard.seen(), guard.answered()),
        }
    }
}

/// Runs a case; returns also whether the driver is lost.
async fn run(
    cluster: &TestCluster,
    driver: &mut Driver,
    case: &SdkCase,
    number: usize,
) -> Result<(SdkRun, bool), AuditError> {
    let key = format!("audit:{number}");
    let value = match case.operation.as_str() {
        "increment" => json!(0),
        "append" => json!("a"),
        _ => json!({"a": 1}),
    };
    if case.operation != "insert" {
        let stored = cluster.put_document(BUCKET, "_default._default", &key, &value);
        stored.map_err(AuditError::Cluster)?;
    }
    let (asked, fields) = request(case, &key);
    if let SdkFault::Connect(change) = &case.fault {
        return connect_and_run(cluster, driver, case, change, &key).await;
    }
    // Opens the connections, so that only the fault is a reason to retry. Its result is not
    // judged: a document to append to need not be readable.
    let (warm, warm_fields) = match case.is_query() {
        true => (asked, with_timeout(fields.clone(), PATIENCE)),
        false => ("get", with_timeout(json!({"key": key}), PATIENCE)),
    };
    for _ in 0..if case.is_query() { 4 } else { 1 } {
        driver.ask(warm, warm_fields.clone(), PATIENCE * 2).await?;
    }
    if let SdkFault::Move(moves) = case.fault {
        return move_and_run(cluster, driver, case, moves, &key).await;
    }
    let fault = InForce::begin(cluster, case, &key);
    Ok(measure(cluster, driver, case, &key, &fault).await)
}

/// Moves all vbuckets of the document's node to the other node, and back after the operation.
async fn move_and_run(
    cluster: &TestCluster,
    driver: &mut Driver,
    case: &SdkCase,
    moves: VbucketMove,
    key: &str,
) -> Result<(SdkRun, bool), AuditError> {
    let old = cluster.active_node(BUCKET, key.as_bytes());
    let old = old.map_err(AuditError::Cluster)?.expect("no node is lost");
    let rebalance = cluster.begin_rebalance_out(old).await;
    let mut rebalance = rebalance.map_err(AuditError::Cluster)?;
    let at_old = Fault::on_service(Service::KeyValue).node(old).key(key);
    let ran = match moves {
        VbucketMove::Unannounced => {
            let no_config = Fault::on(Opcode::GetClusterConfig).answer(Status::TemporaryFailure);
            let _no_config = cluster.fault(no_config);
            rebalance.step(usize::MAX);
            let requests = InForce::Rule(cluster.fault(at_old.pass()));
            measure(cluster, driver, case, key, &requests).await
        }
        VbucketMove::Planned => {
            let refused = cluster.fault(at_old.answer(Status::NotMyVbucket));
            let refused = InForce::Rule(refused);
            let moved = async {
                while refused.counts().0 == 0 {
                    sleep(PERIOD).await;
                }
                sleep(MOVE_AFTER).await;
                rebalance.step(usize::MAX);
                std::future::pending().await
            };
            tokio::select! {
                ran = measure(cluster, driver, case, key, &refused) => ran,
                never = moved => never,
            }
        }
    };
    drop(rebalance);
    cluster.rebalance().await.map_err(AuditError::Cluster)?;
    Ok(ran)
}

/// Connects as the case says. A driver that cannot connect has answered.
async fn connect_and_run(
    cluster: &TestCluster,
    driver: &mut Driver,
    case: &SdkCase,
    change: &ConnectChange,
    key: &str,
) -> Result<(SdkRun, bool), AuditError> {
    let mut fields = with_timeout(connection(cluster), Duration::from_millis(case.timeout_ms));
    for (name, value) in change.fields.as_object().into_iter().flatten() {
        fields[name] = value.clone();
    }
    if let Some(address) = cluster.tls_connection_string().filter(|_| change.tls) {
        fields["connection_string"] = json!(address);
    }
    let fault = change.fault.clone().map(|fault| {
        let fault: Fault = serde_json::from_value(fault).expect("a test reads the rules");
        cluster.fault(fault)
    });
    let limit = Duration::from_millis(case.timeout_ms) + GRACE;
    let connected = driver.ask("connect", fields, limit).await;
    let (mut run, lost) = match connected {
        Ok(answer) if answer.ok => {
            let requests = InForce::begin(cluster, case, key);
            measure(cluster, driver, case, key, &requests).await
        }
        Ok(answer) => (SdkRun::unsent(answer), false),
        Err(error) => (SdkRun::unsent(DriverAnswer::lost(&error, limit)), true),
    };
    // An SDK may make its connections with the operation.
    run.hit = fault.map_or(1, |fault| fault.fired());
    Ok((run, lost))
}

/// Asks for the operation while the fault is in force; returns also whether the driver is lost.
async fn measure(
    cluster: &TestCluster,
    driver: &mut Driver,
    case: &SdkCase,
    key: &str,
    fault: &InForce,
) -> (SdkRun, bool) {
    let timeout = Duration::from_millis(case.timeout_ms);
    let (asked, fields) = request(case, key);
    let before = cluster.journal().applied();
    let begun = Instant::now();
    let mut arrivals = Vec::new();
    let mut count = || {
        let (seen, _) = fault.counts();
        while (arrivals.len() as u64) < seen {
            arrivals.push(begun.elapsed());
        }
    };
    let answer = {
        let mut asking =
            std::pin::pin!(driver.ask(asked, with_timeout(fields, timeout), timeout + GRACE));
        loop {
            tokio::select! {
                biased;
                answer = &mut asking => break answer,
                () = sleep(PERIOD) => count(),
            }
        }
    };
    count();
    let (answer, lost) = match answer {
        Ok(answer) => (answer, false),
        Err(error) => (DriverAnswer::lost(&error, begun.elapsed()), true),
    };
    // Before the fault ends: a held request would be applied then.
    let applied = cluster.journal().since(before);
    let applied = applied
        .iter()
        .filter(|entry| entry.key() == key.as_bytes())
        .count();
    let (_, hit) = fault.counts();
    let run = SdkRun {
        arrivals,
        applied,
        hit,
        answer,
    };
    (run, lost)
}

/// Returns the command for an operation, and its fields.
fn request(case: &SdkCase, key: &str) -> (&'static str, Value) {
    let operation = case.operation.as_str();
    match operation {
        "get" => ("get", json!({"key": key})),
        "exists" => ("exists", json!({"key": key})),
        "upsert" => ("upsert", json!({"key": key, "value": {"a": 2}})),
        "insert" => ("insert", json!({"key": key, "value": {"a": 2}})),
        "replace" => ("replace", json!({"key": key, "value": {"a": 2}})),
        "remove" => ("remove", json!({"key": key})),
        "append" => ("append", json!({"key": key, "text": "b"})),
        "increment" => ("increment", json!({"key": key})),
        "touch" => ("touch", json!({"key": key, "expiry_seconds": 600})),
        "lookup" => ("lookup", json!({"key": key, "path": "a"})),
        "mutate" => ("mutate", json!({"key": key, "path": "a", "value": 2})),
        _ => {
            let readonly = operation == "query-readonly";
            (
                "query",
                json!({"statement": "SELECT RAW 1", "readonly": readonly}),
            )
        }
    }
}

fn with_timeout(mut fields: Value, timeout: Duration) -> Value {
    fields["timeout_ms"] = json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
    fields
}
