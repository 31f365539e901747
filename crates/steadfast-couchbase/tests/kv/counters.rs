//! Counting.

use std::time::Duration;

use steadfast_couchbase::ErrorKind;

use crate::fixture::{Setup, fails_with};

#[tokio::test]
async fn a_counter_counts_up_and_down_and_stops_at_zero() {
    let users = &Setup::simple().await.users;
    let created = users.increment("n").initial(5).await.unwrap();
    assert_eq!(created.value(), 5, "the initial value, nothing added");
    assert_eq!(users.increment("n").await.unwrap().value(), 6);
    let plus = users.increment("n").delta(10).initial(99).await.unwrap();
    assert_eq!(plus.value(), 16);
    assert_eq!(
        plus.token().unwrap().seqno,
        created.token().unwrap().seqno + 2
    );
    assert_eq!(users.decrement("n").await.unwrap().value(), 15);
    let down = users.decrement("n").delta(u64::MAX).await.unwrap();
    assert_eq!(down.value(), 0);
    let read = users.get("n").await.unwrap();
    assert_eq!(
        (read.content::<u64>().unwrap(), read.cas()),
        (0, down.cas())
    );
}

#[tokio::test]
async fn a_counter_that_is_missing_is_not_found_without_an_initial_value() {
    let users = &Setup::simple().await.users;
    fails_with(users.increment("n").await, ErrorKind::DocumentNotFound);
    let outcome = users.decrement("n").delta(3).await;
    fails_with(outcome, ErrorKind::DocumentNotFound);
    assert!(!users.exists("n").await.unwrap().exists());
    assert_eq!(users.decrement("n").initial(0).await.unwrap().value(), 0);
}

#[tokio::test]
async fn a_document_that_is_not_a_number_cannot_be_counted() {
    let setup = Setup::simple().await;
    setup.users.upsert("ada", &"Ada").await.unwrap();
    fails_with(setup.users.increment("ada").await, ErrorKind::DeltaInvalid);
}

#[tokio::test]
async fn the_expiry_of_a_counter_is_that_of_its_creation() {
    let setup = Setup::simple().await;
    let hour = Duration::from_secs(3600);
    let users = &setup.users;
    users.increment("n").initial(0).expiry(hour).await.unwrap();
    let expiry = setup.stored("n").expiry;
    assert_ne!(expiry, 0);
    users.increment("n").initial(0).await.unwrap();
    assert_eq!(setup.stored("n").expiry, expiry);
}
