//! The fleet of the tests: a tenth of the usual one, and of its service.

use steadfast_storm::Storm;

pub(crate) fn small() -> Storm {
    Storm {
        clients: 10,
        rate: 100.0,
        workers: 1,
        queue: 250,
        ..Storm::default()
    }
}
