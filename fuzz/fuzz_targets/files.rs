//! Files that a user writes: those of `storm check`, strategies, faults, scripts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use steadfast::config::StrategyConfig;
use steadfast_cluster::fault::Fault;
use steadfast_cluster::script::{Script, ScriptSpec};
use steadfast_storm::check::FleetCheck;

fuzz_target!(|text: &str| {
    if let Ok(check) = toml::from_str::<FleetCheck>(text) {
        for scenario in &check.scenario {
            let _ = scenario.check();
        }
        for strategy in check.strategies.values() {
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
