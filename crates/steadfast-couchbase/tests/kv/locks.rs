//! Locked documents.

use std::time::Duration;

use steadfast::{BestEffort, StrategyExt};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::ErrorKind;
use steadfast_wire::{Opcode, Status};

use crate::fixture::{Setup, fails_with, ms, reasons};

const LOCK: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_lock_excludes_others_until_it_is_released() {
    let users = &Setup::simple().await.users;
    users.upsert("ada", &1).await.unwrap();
    let mine = users.get_and_lock("ada", LOCK).await.unwrap();
    assert_eq!(mine.content::<u8>().unwrap(), 1);

    let impatient = BestEffort::default().max_attempts(3).unwrap();
    for outcome in [
        users.upsert("ada", &2).retry(impatient.clone()).await.err(),
        users.remove("ada").retry(impatient.clone()).await.err(),
        users.get_and_lock("ada", LOCK).retry(impatient).await.err(),
    ] {
        let error = outcome.expect("it is locked");
        assert_eq!(error.kind(), ErrorKind::DocumentLocked, "{error:#}");
        assert_eq!(reasons(&error), ["KV_LOCKED"]);
        assert_eq!(error.attempts(), 3);
        assert!(!error.is_ambiguous());
    }
    users.unlock("ada", mine.cas()).await.unwrap();
    users.upsert("ada", &2).await.unwrap();
    let outcome = users.unlock("ada", mine.cas()).await;
    fails_with(outcome, ErrorKind::DocumentNotLocked);
    fails_with(users.unlock("nobody", 1).await, ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn the_holder_of_the_lock_can_write() {
    let users = &Setup::simple().await.users;
    users.upsert("ada", &1).await.unwrap();
    let mine = users.get_and_lock("ada", LOCK).await.unwrap();
    users.replace("ada", &2).cas(mine.cas()).await.unwrap();
    assert_eq!(users.get("ada").await.unwrap().content::<u8>().unwrap(), 2);
}

#[tokio::test]
async fn unlocking_with_another_cas_is_a_mismatch_and_is_not_retried() {
    let users = &Setup::simple().await.users;
    users.upsert("ada", &1).await.unwrap();
    let mine = users.get_and_lock("ada", LOCK).await.unwrap();
    let outcome = users.unlock("ada", mine.cas() + 1).await;
    let error = fails_with(outcome, ErrorKind::CasMismatch);
    assert_eq!(error.attempts(), 1);
    assert_eq!(reasons(&error), [""; 0], "the orchestrator never saw it");
}

/// Servers before 7.6 say no more than that.
#[tokio::test]
async fn an_unlock_that_is_answered_with_a_temporary_failure_names_the_likeliest_cause() {
    let setup = Setup::simple().await;
    let unlocks = Fault::on(Opcode::UnlockKey).answer(Status::TemporaryFailure);
    let unlocks = setup.server.fault(unlocks);
    let outcome = setup.users.unlock("ada", 1).timeout(ms(50)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(unlocks.fired() > 1, "RFC 0049 retries it");
    assert!(
        format!("{error:#}").contains("probably not locked"),
        "{error:#}"
    );
    let reads = Fault::on(Opcode::Get).answer(Status::TemporaryFailure);
    let _reads = setup.server.fault(reads);
    let outcome = setup.users.get("ada").timeout(ms(50)).await;
    let error = fails_with(outcome, ErrorKind::UnambiguousTimeout);
    assert!(format!("{error:#}").contains("warming up"), "{error:#}");
}
