//! Named scenarios: common faults, and the published ones (S1 to S9).
//!
//! `docs/storm.md` gives the source and the reference result of each published scenario.

use crate::model::{
    Arrivals, Clients, Distribution, Effect, Fault, Network, Queue, Scenario, Service,
};

/// Returns the common faults, for a fleet of the default size.
pub fn common() -> Vec<Scenario> {
    let fault = |name: &str, until: f64, effect: Effect| {
        Scenario::default()
            .named(name)
            .with_fault(Fault::new(20.0, until, effect))
    };
    vec![
        Scenario::default(),
        fault("blip", 21.0, Effect::RefuseConnections),
        fault("outage", 40.0, Effect::RefuseConnections),
        fault("unresponsive", 40.0, Effect::NoResponse),
        brownout(),
        fault("errors", 60.0, Effect::Fail { share: 0.3 }),
        fault(
            "throttling",
            40.0,
            Effect::Throttle {
                share: 0.4,
                hint: Some(2.0),
            },
        ),
        fault("flash-crowd", 30.0, Effect::Load { factor: 2.0 }),
        fault("held", 30.0, Effect::Hold),
        shard(),
    ]
}

/// Returns the published scenarios.
pub fn published() -> Vec<Scenario> {
    vec![
        s1_contention(100),
        s2_flaky(100, 10.0, 0.2),
        s3_hold(280.0),
        s4_cpu(6200.0, 0.2, 10.0),
        s5_flash_crowd(1000),
        s5_brownout(1000),
        s6_queue(),
        s7_herd(),
        s8_moved(0.5, None),
        s9_layers(0.5),
    ]
}

/// Finds a scenario by its name.
pub fn by_name(name: &str) -> Option<Scenario> {
    let mut all = common().into_iter().chain(published());
    all.find(|scenario| scenario.name == name)
}

/// Triples service times for 20 seconds.
pub fn brownout() -> Scenario {
    Scenario::default().named("brownout").with_fault(Fault::new(
        20.0,
        40.0,
        Effect::Slow { factor: 3.0 },
    ))
}

/// One of four shards does not respond for 20 seconds.
pub fn shard() -> Scenario {
    let mut scenario = Scenario::default().named("shard");
    scenario.service.endpoints = 4;
    scenario.service.workers = 4;
    scenario.service.service_time = Distribution::Exponential(0.0128);
    scenario.service.queue.limit = Some(625);
    scenario.with_fault(Fault::new(20.0, 40.0, Effect::NoResponse).of_endpoints(0.25))
}

/// Clients whose requests are all idempotent and have no deadline of their own.
fn patient(count: u32, attempts: u32, attempt_timeout: Option<f64>) -> Clients {
    Clients {
        count,
        idempotent: 1.0,
        timeout: None,
        attempt_timeout,
        attempts,
        ..Clients::default()
    }
}

fn quick_network() -> Network {
    Network {
        delay: Distribution::Exponential(0.001),
    }
}

/// S1: clients that all write the same row (Brooker 2015, "Exponential Backoff And Jitter").
pub fn s1_contention(clients: u32) -> Scenario {
    Scenario {
        name: "s1-contention".to_owned(),
        arrivals: Arrivals::Once,
        clients: patient(clients, 1_000_000, None),
        network: Network {
            delay: Distribution::Normal {
                mean: 0.01,
                deviation: 0.002,
            },
        },
        service: Service {
            optimistic: true,
            ..Service::default()
        },
        faults: Vec::new(),
        duration: 1.0,
        bin: 0.1,
    }
}

/// S2: a service that fails at random and has no limit (Brooker 2022, "Fixing retries with
/// token buckets and circuit breakers").
pub fn s2_flaky(clients: u32, rate_of_client: f64, share: f64) -> Scenario {
    let duration = 30.0;
    Scenario {
        name: "s2-flaky".to_owned(),
        arrivals: Arrivals::Open(f64::from(clients) * rate_of_client),
        clients: patient(clients, u32::MAX, None),
        network: Network {
            delay: Distribution::Exponential(0.01),
        },
        service: Service {
            workers: 1_000_000,
            service_time: Distribution::Constant(0.0),
            ..Service::default()
        },
        faults: vec![Fault::new(0.0, 3600.0, Effect::Fail { share })],
        duration,
        bin: 1.0,
    }
}

/// S3: messages are held back for 10 s (Bronson et al., HotOS'21, section 2.1).
pub fn s3_hold(rate: f64) -> Scenario {
    Scenario {
        name: "s3-hold".to_owned(),
        arrivals: Arrivals::Open(rate),
        clients: patient(10, 2, Some(1.0)),
        network: quick_network(),
        service: Service {
            workers: 3,
            service_time: Distribution::Exponential(0.01),
            queue: Queue::default(),
            ..Service::default()
        },
        faults: vec![Fault::new(30.0, 40.0, Effect::Hold)],
        duration: 400.0,
        bin: 1.0,
    }
}

/// S4: a cut of the CPU (Huang et al., OSDI'22, section 5.2; capacity fitted).
pub fn s4_cpu(rate: f64, capacity_left: f64, seconds: f64) -> Scenario {
    let factor = 1.0 / capacity_left;
    Scenario {
        name: "s4-cpu".to_owned(),
        arrivals: Arrivals::Open(rate),
        clients: patient(100, 5, Some(3.0)),
        network: quick_network(),
        service: Service {
            workers: 8,
            service_time: Distribution::Exponential(8.0 / 16_500.0),
            queue: Queue::default(),
            ..Service::default()
        },
        faults: vec![Fault::new(10.0, 10.0 + seconds, Effect::Slow { factor })],
        duration: 100.0,
        bin: 1.0,
    }
}

fn s5(name: &str, queue_limit: usize, fault: Fault) -> Scenario {
    Scenario {
        name: name.to_owned(),
        arrivals: Arrivals::Open(700.0),
        clients: patient(50, 3, Some(1.0)),
        network: quick_network(),
        service: Service {
            workers: 10,
            service_time: Distribution::Exponential(0.01),
            queue: Queue {
                limit: Some(queue_limit),
                ..Queue::default()
            },
            ..Service::default()
        },
        faults: vec![fault],
        duration: 250.0,
        bin: 1.0,
    }
}

/// S5 (i): twice the load for 10 s, with a bounded queue.
pub fn s5_flash_crowd(queue_limit: usize) -> Scenario {
    let fault = Fault::new(30.0, 40.0, Effect::Load { factor: 2.0 });
    s5("s5-flash-crowd", queue_limit, fault)
}

/// S5 (ii): half of the capacity for 30 s, with a bounded queue.
pub fn s5_brownout(queue_limit: usize) -> Scenario {
    let fault = Fault::new(30.0, 60.0, Effect::Slow { factor: 2.0 });
    s5("s5-brownout", queue_limit, fault)
}

/// S6: one worker near saturation, and a burst (metafor, DesCartes).
pub fn s6_queue() -> Scenario {
    let rate = 9.3;
    let factor = 30.0 / rate;
    Scenario {
        name: "s6-queue".to_owned(),
        arrivals: Arrivals::Open(rate),
        clients: patient(10, 4, Some(4.0)),
        network: quick_network(),
        service: Service {
            workers: 1,
            service_time: Distribution::Exponential(0.1),
            queue: Queue {
                limit: Some(100),
                ..Queue::default()
            },
            ..Service::default()
        },
        faults: vec![Fault::new(120.0, 125.0, Effect::Load { factor })],
        duration: 400.0,
        bin: 1.0,
    }
}

/// S7: 10,000 clients lose their connections at the same time, and the server is down for
/// another 5 s.
pub fn s7_herd() -> Scenario {
    Scenario {
        name: "s7-herd".to_owned(),
        arrivals: Arrivals::Once,
        clients: patient(10_000, 1_000_000, Some(3.0)),
        network: quick_network(),
        service: Service {
            workers: 1,
            service_time: Distribution::Constant(0.001),
            queue: Queue {
                limit: Some(511),
                ..Queue::default()
            },
            ..Service::default()
        },
        faults: vec![Fault::new(0.0, 5.0, Effect::RefuseConnections)],
        duration: 10.0,
        bin: 0.1,
    }
}

/// S8: shards have moved, and clients learn it after `lag` seconds. With `release`, the new
/// map wakes waiting requests, so many in a second.
pub fn s8_moved(lag: f64, release: Option<f64>) -> Scenario {
    Scenario {
        name: "s8-moved".to_owned(),
        arrivals: Arrivals::Open(20_000.0 / lag),
        clients: Clients {
            timeout: Some(2.5),
            ..patient(100, 1_000_000, None)
        },
        network: Network {
            delay: Distribution::Constant(0.000_25),
        },
        service: Service {
            workers: 1_000_000,
            service_time: Distribution::Constant(0.0),
            ..Service::default()
        },
        faults: vec![Fault::new(0.0, lag, Effect::Moved { release })],
        duration: lag,
        bin: 1.0,
    }
}

/// S9: three layers with four attempts each, above a service that fails at random.
pub fn s9_layers(share: f64) -> Scenario {
    Scenario {
        name: "s9-layers".to_owned(),
        arrivals: Arrivals::Open(100.0),
        clients: Clients {
            layers: 3,
            ..patient(10, 4, None)
        },
        network: quick_network(),
        service: Service {
            workers: 1_000_000,
            service_time: Distribution::Constant(0.001),
            ..Service::default()
        },
        faults: vec![Fault::new(0.0, 3600.0, Effect::Fail { share })],
        duration: 100.0,
        bin: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_valid_and_found_by_its_name() {
        for scenario in common().into_iter().chain(published()) {
            assert_eq!(scenario.check(), Ok(()), "{}", scenario.name);
            assert_eq!(by_name(&scenario.name), Some(scenario));
        }
        assert_eq!(by_name("unknown"), None);
    }
}
