//! The simulation of the tests: a tenth of the default fleet and service.

use steadfast_storm::Simulation;

pub(crate) fn small() -> Simulation {
    Simulation {
        clients: 10,
        arrival_rate: 100.0,
        workers: 1,
        queue_limit: 250,
        ..Simulation::default()
    }
}
