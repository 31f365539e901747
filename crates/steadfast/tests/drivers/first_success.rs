//! A success at the first attempt, as the strategy sees it.

use std::future::ready;
use std::io;

use steadfast::{BestEffort, Budget, LoadAware, RetryStrategy, Standard, StrategyExt, retry};

/// A budget of 500 with 50 in it, to which a success gives 1.
fn low() -> Budget {
    let budget = Budget::builder().initial(50).build();
    budget.expect("the settings are valid")
}

async fn succeed(strategy: impl RetryStrategy) {
    let result = retry(strategy).run(|_| ready(Ok::<_, io::Error>(()))).await;
    result.expect("the attempt succeeds");
}

#[tokio::test]
async fn every_budget_around_a_strategy_gets_its_refund() {
    let (own, outer) = (low(), low());
    let standard = Standard::builder().budget(own.clone()).build();
    let standard = standard.expect("the settings are valid");
    let levels = || (own.level(), outer.level());
    succeed(&standard).await;
    assert_eq!(levels(), (51, 50));
    succeed(standard.clone().max_attempts(2).expect("valid")).await;
    assert_eq!(levels(), (52, 50));
    succeed(standard.clone().with_budget(outer.clone())).await;
    assert_eq!(levels(), (53, 51));
    succeed(BestEffort::default().with_budget(outer.clone())).await;
    assert_eq!(levels(), (53, 52));
    succeed(LoadAware::new().around(standard.clone())).await;
    assert_eq!(levels(), (54, 52));
    let boxed: Box<dyn RetryStrategy> = Box::new(standard.with_budget(outer.clone()));
    succeed(&boxed).await;
    assert_eq!(levels(), (55, 53));
}
