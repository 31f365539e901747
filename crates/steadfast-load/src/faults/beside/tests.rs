use std::collections::BTreeSet;

use super::*;
use crate::accounting::Totals;
use crate::client::SideFuture;

/// A cluster that refuses writes, forgets them, or keeps them.
#[derive(Default)]
struct Store {
    /// The class of the error of every write; none if writes are acknowledged.
    refuses: Option<ErrorClass>,
    forgets: bool,
    documents: Mutex<BTreeSet<String>>,
}

impl Store {
    fn put(&self, key: String) -> Result<(), ClientError> {
        if let Some(class) = self.refuses {
            let error = ClientError::unanswered();
            return Err(ClientError { class, ..error });
        }
        if !self.forgets {
            self.documents.lock().insert(key);
        }
        Ok(())
    }
}

impl SideClient for Store {
    fn upsert(&self, _: SidePlace, key: String, _: bool) -> SideFuture<'_, ()> {
        Box::pin(async move { self.put(key) })
    }

    fn exists(&self, _: SidePlace, key: String) -> SideFuture<'_, bool> {
        Box::pin(async move { Ok(self.documents.lock().contains(&key)) })
    }

    /// Writes every row, although one may exist.
    fn insert_rows(&self, _: SidePlace, keys: Vec<String>) -> SideFuture<'_, ()> {
        self.documents.lock().extend(keys);
        Box::pin(async { Ok(()) })
    }
}

fn keys(name: &str) -> Vec<String> {
    (0..3).map(|at| format!("{name}:{at}")).collect()
}

/// Checks a place that was created again, and statements that fail half-way.
async fn check(store: Store) -> (Totals, Totals) {
    let store = Arc::new(store);
    let beside = || {
        let log = WriteLog::new(0, true, Duration::from_secs(15));
        Beside::new(store.clone(), Arc::new(Mutex::new(log)))
    };
    let (recreated, half) = (beside(), beside());
    recreated
        .recreated(DROPPED, &keys("before"), &keys("after"))
        .await;
    half.half_statements(&keys("row")).await;
    let totals = |beside: Beside| beside.violations.lock().close().0;
    (totals(recreated), totals(half))
}

#[tokio::test(start_paused = true)]
async fn writes_that_time_out_are_unchecked_and_violate_nothing() {
    let (recreated, half) = check(Store {
        refuses: Some(ErrorClass::Explained),
        ..Store::default()
    })
    .await;
    assert!(!recreated.is_violated(), "{recreated:?}");
    assert!(!half.is_violated(), "{half:?}");
    assert_eq!((recreated.unchecked, half.unchecked), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_no_fault_explains_is_a_violation() {
    let (recreated, half) = check(Store {
        refuses: Some(ErrorClass::Exists),
        ..Store::default()
    })
    .await;
    assert_eq!((recreated.unexplained, recreated.lost), (3, 0));
    assert_eq!((half.unexplained, half.lost), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_acknowledged_write_that_is_missing_is_lost() {
    let (recreated, _) = check(Store {
        forgets: true,
        ..Store::default()
    })
    .await;
    assert_eq!((recreated.lost, recreated.unexplained), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn documents_that_outlive_their_bucket_and_statements_that_ignore_a_row_are_violations() {
    let store = Store::default();
    store.documents.lock().extend(keys("before"));
    let (recreated, half) = check(store).await;
    assert_eq!((recreated.unexplained, recreated.lost), (3, 0));
    assert_eq!((half.unexplained, half.unchecked), (2, 0));
}
