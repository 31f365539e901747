//! Looking at a strategy changes none of its decisions.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use steadfast::strategy::Limits;
use steadfast::{Call, Failure, LoadAware, RetryStrategy, VirtualWorld, World, explain, reason};

use crate::config_for_many;
use crate::failures::failures_that_ask;
use crate::scripts::scripts;
use crate::simulation::run;
use crate::strategies::{Built, all_strategies};

/// Looks at everything that can be seen of a strategy, now and at other times.
fn look(built: &Built, now: Instant) {
    let info = built.strategy.info();
    for now in [
        now,
        now + Duration::from_secs(7),
        now - Duration::from_secs(7),
    ] {
        info.budget_left();
        for (_, budget) in &built.budgets {
            budget.level();
            let _ = (format!("{budget} {budget:?}"), budget.load());
        }
        drop(info.fork(now));
    }
    info.worst_case(&Limits::default());
    let call = Call::new("get")
        .idempotent(true)
        .timeout(Duration::from_secs(9));
    for failure in [
        Failure::inconclusive(&reason::OPERATION_FAILED),
        Failure::in_flight(&reason::TIMEOUT).timed_out(),
    ] {
        if let Ok(explanation) = explain(&*built.strategy, &call, &failure) {
            let _ = explanation.to_string();
        }
    }
}

proptest! {
    #![proptest_config(config_for_many())]

    #[test]
    fn looking_changes_no_decision(
        strategy in all_strategies(),
        scripts in prop::collection::vec(scripts(failures_that_ask()), 1..20),
        seed: u64,
    ) {
        let outlines = |looks: bool| -> Vec<String> {
            let built = strategy.build();
            if looks {
                look(&built, VirtualWorld::new().now());
            }
            let simulated = run(&*built.strategy, &scripts, seed, |_, _, now| {
                if looks {
                    look(&built, now);
                }
            });
            simulated.iter().map(|one| one.outline()).collect()
        };
        prop_assert_eq!(outlines(true), outlines(false));
    }
}

/// `state` and `Debug` are those of the type.
#[test]
fn looking_at_a_load_aware_strategy_changes_no_decision() {
    let retried = |looks: bool| -> Vec<bool> {
        let (strategy, world) = (LoadAware::new(), VirtualWorld::new().seeded(5));
        let call = Call::new("get").idempotent(true);
        let failures = [
            Failure::inconclusive(&reason::OPERATION_FAILED),
            Failure::in_flight(&reason::TIMEOUT).timed_out(),
        ];
        let outcomes = failures.iter().cycle().take(40).map(|failure| {
            if looks {
                let now = world.now();
                let _ = (strategy.state(now), format!("{strategy:?}"));
                strategy.state(now + Duration::from_secs(3600));
            }
            let token = strategy.acquire_initial_token(&call.request(), &world);
            world.advance(Duration::from_millis(30));
            let Some(token) = token.into_token() else {
                return false;
            };
            let decision = strategy.refresh_retry_token(token, &call.request(), failure, &world);
            matches!(decision, steadfast::strategy::Decision::Ready(Ok(_)))
        });
        outcomes.collect()
    };
    let seen = retried(true);
    assert_eq!(seen, retried(false));
    assert!(seen.contains(&true) && seen.contains(&false), "{seen:?}");
}
