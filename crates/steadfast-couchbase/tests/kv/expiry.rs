//! Documents that vanish.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_couchbase::ErrorKind;
use steadfast_couchbase::collection::Expiry;

use crate::fixture::{Setup, fails_with};

const HOUR: Duration = Duration::from_secs(3600);

/// How far two moments are from each other is decided by clocks in whole seconds.
fn about(moment: SystemTime, expected: SystemTime) -> bool {
    let early = expected - Duration::from_secs(2);
    let late = expected + Duration::from_secs(5);
    early <= moment && moment <= late
}

#[tokio::test]
async fn an_expiry_is_a_span_or_a_moment_and_can_be_asked_for() {
    let users = &Setup::simple().await.users;
    let now = SystemTime::now();
    users.upsert("span", &1).expiry(HOUR).await.unwrap();
    users.insert("moment", &2).expiry(now + HOUR).await.unwrap();
    users
        .insert("month", &3)
        .expiry(HOUR * 24 * 31)
        .await
        .unwrap();
    users.insert("never", &4).await.unwrap();

    for (id, after) in [("span", HOUR), ("moment", HOUR), ("month", HOUR * 24 * 31)] {
        let found = users.get(id).with_expiry().await.unwrap();
        let expiry = found.expiry().expect("it has one");
        assert!(about(expiry, now + after), "{id}: {expiry:?}");
        assert!(found.content::<u8>().is_ok());
        assert_eq!(found.cas(), users.get(id).await.unwrap().cas());
        assert_eq!(found.flags(), 0x0200_0000);
    }
    let never = users.get("never").with_expiry().await.unwrap();
    assert_eq!(never.expiry(), None);
    let outcome = users.get("nobody").with_expiry().await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn a_document_is_gone_when_its_time_is_up() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    users.upsert("ada", &1).expiry(HOUR).await.unwrap();
    setup.server.advance_clock(HOUR / 2);
    users.get("ada").await.unwrap();
    users.touch("ada", HOUR).await.unwrap();
    setup.server.advance_clock(HOUR / 2 + HOUR / 4);
    let found = users.get_and_touch("ada", HOUR).await.unwrap();
    assert_eq!(found.content::<u8>().unwrap(), 1);
    setup.server.advance_clock(HOUR + Duration::from_secs(1));
    fails_with(users.get("ada").await, ErrorKind::DocumentNotFound);
    assert!(!users.exists("ada").await.unwrap().exists());
    fails_with(users.touch("ada", HOUR).await, ErrorKind::DocumentNotFound);
    let outcome = users.get_and_touch("ada", HOUR).await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
}

#[tokio::test]
async fn an_expiry_is_removed_kept_or_set() {
    let setup = Setup::simple().await;
    let users = &setup.users;
    users.upsert("ada", &1).expiry(HOUR).await.unwrap();
    users.replace("ada", &2).preserve_expiry().await.unwrap();
    assert_ne!(setup.stored("ada").expiry, 0);
    let touched = users.touch("ada", Expiry::NEVER).await.unwrap();
    assert_eq!(touched.token(), None);
    assert_eq!(setup.stored("ada").expiry, 0);
    assert_eq!(touched.cas(), users.get("ada").await.unwrap().cas());
    users.touch("ada", HOUR).await.unwrap();
    users.upsert("ada", &3).await.unwrap();
    assert_eq!(setup.stored("ada").expiry, 0, "a write takes it away");
}

#[tokio::test]
async fn a_moment_is_sent_in_whole_seconds() {
    let setup = Setup::simple().await;
    let moment = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    setup.users.upsert("ada", &1).expiry(moment).await.unwrap();
    assert_eq!(setup.stored("ada").expiry, 4_000_000_000);
}
