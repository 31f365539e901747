//! The scenario of the tests: a tenth of the default fleet and service.

use steadfast_storm::Scenario;

pub(crate) fn small() -> Scenario {
    let mut scenario = Scenario::default().with_clients(10);
    scenario.rate = 100.0;
    scenario.service.workers = 1;
    scenario.service.queue_limit = Some(250);
    scenario
}
