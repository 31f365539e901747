//! Every data operation, refused and then let through.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::json;
use steadfast::{BestEffort, StrategyExt};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::collection::{LookupInSpec, MutateInSpec};
use steadfast_couchbase::{Collection, ErrorKind, KvOperation, Result};
use steadfast_wire::Status;

use crate::fixture::{Setup, fails_with, reasons};

/// RFC 0049, "Response Code Retry List", but for what is always retried.
const LIST: [(Status, &str); 4] = [
    (Status::TemporaryFailure, "KV_TEMPORARY_FAILURE"),
    (Status::Locked, "KV_LOCKED"),
    (Status::SyncWriteInProgress, "KV_SYNC_WRITE_IN_PROGRESS"),
    (
        Status::SyncWriteReCommitInProgress,
        "KV_SYNC_WRITE_RE_COMMIT_IN_PROGRESS",
    ),
];

const DATA: [KvOperation; 18] = [
    KvOperation::Get,
    KvOperation::GetAndTouch,
    KvOperation::GetAndLock,
    KvOperation::GetWithExpiry,
    KvOperation::GetReplica,
    KvOperation::Unlock,
    KvOperation::Touch,
    KvOperation::Exists,
    KvOperation::Insert,
    KvOperation::Upsert,
    KvOperation::Replace,
    KvOperation::Remove,
    KvOperation::Append,
    KvOperation::Prepend,
    KvOperation::Increment,
    KvOperation::Decrement,
    KvOperation::LookupIn,
    KvOperation::MutateIn,
];

const HOUR: Duration = Duration::from_secs(3600);

/// Makes a document that the operation succeeds on. Returns the CAS to do it with.
async fn prepare(users: &Collection, operation: KvOperation, id: &str) -> u64 {
    match operation {
        KvOperation::Insert => {
            // The others' documents show that there is a connection to their node.
            assert!(!users.exists(id).await.unwrap().exists());
            0
        }
        KvOperation::Unlock => {
            users.upsert(id, &1).await.unwrap();
            let lock = users.get_and_lock(id, Duration::from_secs(30));
            lock.await.unwrap().cas()
        }
        KvOperation::LookupIn | KvOperation::MutateIn => {
            users.upsert(id, &json!({"a": 1})).await.unwrap().cas()
        }
        _ => users.upsert(id, &1).await.unwrap().cas(),
    }
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Does the operation, with this strategy.
fn perform<'a>(
    users: &'a Collection,
    operation: KvOperation,
    id: &'a str,
    cas: u64,
    strategy: impl steadfast::RetryStrategy + 'static,
) -> Outcome<'a> {
    macro_rules! run {
        ($operation:expr) => {{
            let operation = $operation.retry(strategy);
            Box::pin(async move { operation.await.map(|_| ()) })
        }};
    }
    match operation {
        KvOperation::Get => run!(users.get(id)),
        KvOperation::GetAndTouch => run!(users.get_and_touch(id, HOUR)),
        KvOperation::GetAndLock => run!(users.get_and_lock(id, Duration::from_secs(5))),
        KvOperation::GetWithExpiry => run!(users.get(id).with_expiry()),
        KvOperation::GetReplica => run!(users.get_replica(id, 1)),
        KvOperation::Unlock => run!(users.unlock(id, cas)),
        KvOperation::Touch => run!(users.touch(id, HOUR)),
        KvOperation::Exists => run!(users.exists(id)),
        KvOperation::Insert => run!(users.insert(id, &1)),
        KvOperation::Upsert => run!(users.upsert(id, &1)),
        KvOperation::Replace => run!(users.replace(id, &1)),
        KvOperation::Remove => run!(users.remove(id)),
        KvOperation::Append => run!(users.append(id, "0")),
        KvOperation::Prepend => run!(users.prepend(id, "1")),
        KvOperation::Increment => run!(users.increment(id)),
        KvOperation::Decrement => run!(users.decrement(id)),
        KvOperation::LookupIn => run!(users.lookup_in(id, &[LookupInSpec::get("a")])),
        KvOperation::MutateIn => run!(users.mutate_in(id, &[MutateInSpec::upsert("a", &2)])),
        other => panic!("{other:?} is no data operation"),
    }
}

/// Where the list excludes an operation (D12), and where the status is the result: only a
/// document that exists is locked (D42).
fn is_excluded(operation: KvOperation, status: Status) -> bool {
    let without = [KvOperation::Unlock, KvOperation::Exists];
    status == Status::Locked && without.contains(&operation)
}

#[tokio::test]
async fn every_data_operation_goes_on_after_every_status_of_the_list_and_is_applied_once() {
    let setup = Setup::with_replicas(2, 1).await;
    for operation in DATA {
        for (status, reason) in LIST {
            if is_excluded(operation, status) {
                continue;
            }
            let id = format!("{}-{reason}", operation.name());
            let cas = prepare(&setup.users, operation, &id).await;
            let applied = setup.server.journal().applied();
            let fault = Fault::on(operation.opcode()).times(2).answer(status);
            let guard = setup.server.fault(fault);
            let strategy = BestEffort::default();
            let outcome = perform(&setup.users, operation, &id, cas, strategy).await;
            outcome.unwrap_or_else(|error| panic!("{id}: {error:#}"));
            assert_eq!(guard.fired(), 2, "{id}");
            let touches = matches!(operation, KvOperation::GetAndTouch | KvOperation::Touch);
            let writes = u64::from(operation.is_mutation() || touches);
            assert_eq!(setup.server.journal().applied() - applied, writes, "{id}");
        }
    }
}

#[tokio::test]
async fn an_operation_that_is_given_up_says_exactly_why_it_was_retried() {
    let setup = Setup::with_replicas(2, 1).await;
    let kinds = [
        ErrorKind::TemporaryFailure,
        ErrorKind::DocumentLocked,
        ErrorKind::DurableWriteInProgress,
        ErrorKind::DurableWriteReCommitInProgress,
    ];
    for operation in DATA {
        for ((status, reason), kind) in LIST.into_iter().zip(kinds) {
            if is_excluded(operation, status) {
                continue;
            }
            let id = format!("{}-{reason}", operation.name());
            let cas = prepare(&setup.users, operation, &id).await;
            let applied = setup.server.journal().applied();
            let guard = setup
                .server
                .fault(Fault::on(operation.opcode()).answer(status));
            let thrice = BestEffort::default().max_attempts(3).unwrap();
            let outcome = perform(&setup.users, operation, &id, cas, thrice).await;
            let error = fails_with(outcome, kind);
            assert_eq!(reasons(&error), [reason], "{id}");
            assert_eq!((error.attempts(), guard.fired()), (3, 3), "{id}");
            assert!(!error.is_ambiguous(), "{id}: {error}");
            assert_eq!(setup.server.journal().applied(), applied, "{id}");
        }
    }
}

#[tokio::test]
async fn operations_cut_in_flight_are_retried_only_if_idempotent() {
    let setup = Setup::with_replicas(2, 1).await;
    for operation in DATA {
        let id = operation.name();
        let cas = prepare(&setup.users, operation, id).await;
        let fault = Fault::on(operation.opcode()).times(1).cut_before_applying();
        let guard = setup.server.fault(fault);
        let strategy = BestEffort::default();
        let outcome = perform(&setup.users, operation, id, cas, strategy).await;
        assert_eq!(guard.fired(), 1, "{id}");
        if operation.is_idempotent() {
            outcome.unwrap_or_else(|error| panic!("{id}: {error:#}"));
        } else {
            let error = fails_with(outcome, ErrorKind::RequestCanceled);
            assert_eq!(reasons(&error), ["SOCKET_CLOSED_WHILE_IN_FLIGHT"], "{id}");
            assert!(error.is_ambiguous(), "{id}: {error}");
            assert_eq!(error.attempts(), 1, "{id}");
        }
    }
}

#[tokio::test]
async fn a_strategy_and_a_context_are_those_of_the_operation() {
    use steadfast::from_fn;
    use steadfast::strategy::RetryAction;
    struct Robot;
    let for_people = || {
        from_fn(|request, _| match request.context::<Robot>() {
            Some(_) => RetryAction::no_retry(),
            None => RetryAction::with_duration(Duration::from_millis(1)),
        })
    };
    let setup = Setup::simple().await;
    let fault = || Fault::on(KvOperation::Upsert.opcode()).times(2);
    let guard = setup.server.fault(fault().answer(Status::TemporaryFailure));
    let write = setup.users.upsert("k", &1).retry(for_people());
    write.await.unwrap();
    assert_eq!(guard.fired(), 2);
    drop(guard);
    let _guard = setup.server.fault(fault().answer(Status::TemporaryFailure));
    let write = setup.users.upsert("k", &1).retry(for_people());
    let error = fails_with(write.context(Robot).await, ErrorKind::TemporaryFailure);
    assert_eq!(error.attempts(), 1);
}
