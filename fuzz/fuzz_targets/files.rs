//! Files that a user writes: plans of `storm check`, strategies, faults, scripts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast::config::StrategyConfig;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::{Script, ScriptSpec};
use steadfast_storm::check::Plan;

fuzz_target!(|text: &str| {
    if let Ok(plan) = toml::from_str::<Plan>(text) {
        for scenario in &plan.scenario {
            let _ = scenario.check();
        }
        for strategy in plan.strategies.values() {
            let _ = strategy.build();
        }
    }
    if let Ok(strategy) = serde_json::from_str::<StrategyConfig>(text) {
        let _ = strategy.build();
    }
    let _ = serde_json::from_str::<Fault>(text);
    if let Ok(spec) = serde_json::from_str::<ScriptSpec>(text) {
        let _ = Script::try_from(spec);
    }
});
