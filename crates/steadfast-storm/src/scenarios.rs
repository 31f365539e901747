//! Named scenarios: common faults.

use crate::model::{Distribution, FaultEffect, Scenario, ServiceFault};

/// Returns all named scenarios, for a fleet of the default size.
pub fn all() -> Vec<Scenario> {
    let fault = |name: &str, until: f64, effect: FaultEffect| {
        Scenario::default()
            .named(name)
            .with_fault(ServiceFault::new(20.0, until, effect))
    };
    vec![
        Scenario::default(),
        fault("blip", 21.0, FaultEffect::RefuseConnections),
        fault("outage", 40.0, FaultEffect::RefuseConnections),
        fault("unresponsive", 40.0, FaultEffect::NoResponse),
        brownout(),
        fault("errors", 60.0, FaultEffect::Fail { share: 0.3 }),
        fault(
            "throttling",
            40.0,
            FaultEffect::Throttle {
                share: 0.4,
                hint: Some(2.0),
            },
        ),
        fault("flash-crowd", 30.0, FaultEffect::Load { factor: 2.0 }),
        fault("held", 30.0, FaultEffect::Hold),
        shard(),
    ]
}

/// Finds a scenario by its name.
pub fn by_name(name: &str) -> Option<Scenario> {
    all().into_iter().find(|scenario| scenario.name == name)
}

/// Triples service times for 20 seconds.
pub fn brownout() -> Scenario {
    Scenario::default()
        .named("brownout")
        .with_fault(ServiceFault::new(
            20.0,
            40.0,
            FaultEffect::Slow { factor: 3.0 },
        ))
}

/// One of four shards does not respond for 20 seconds.
pub fn shard() -> Scenario {
    let mut scenario = Scenario::default().named("shard");
    scenario.service.endpoints = 4;
    scenario.service.workers = 4;
    scenario.service.service_time = Distribution::Exponential(0.0128);
    scenario.service.queue_limit = Some(625);
    scenario.with_fault(ServiceFault::new(20.0, 40.0, FaultEffect::NoResponse).of_endpoints(0.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_valid_and_found_by_its_name() {
        for scenario in all() {
            assert_eq!(scenario.check(), Ok(()), "{}", scenario.name);
            assert_eq!(by_name(&scenario.name), Some(scenario));
        }
        assert_eq!(by_name("unknown"), None);
    }
}
