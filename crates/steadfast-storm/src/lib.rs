//! Simulates what a retry policy does to a fleet and its service during an outage.
//!
//! A policy that helps one request can ruin the service behind it. All clients retry
//! at the same bad moment, the service works on requests whose clients have stopped
//! waiting, and the outage outlives its cause. A unit test cannot show that, and
//! learning it in production is expensive.
//!
//! Here a fleet of clients sends requests to a service that queues, slows down, rejects
//! and stops responding. Time is virtual: a simulated minute takes well under a second.
//! Each client runs the engine's own [`Orchestrator`] with the [strategy] under test,
//! including budgets and jitter. So production code decides.
//!
//! ```
//! use steadfast_storm::{Policy, scenarios};
//!
//! let mut scenario = scenarios::brownout().with_duration(90.0);
//! scenario.rate = 100.0;
//! scenario.service.workers = 1;
//! scenario.service.queue_limit = Some(250);
//!
//! // Immediate retries keep the service overloaded long after the fault has ended;
//! // with a budget, five busy clients let it recover.
//! let scenario = scenario.with_clients(5);
//! let trials = scenario.compare(&[Policy::immediate(), Policy::guidance()], 0..2)?;
//! assert_eq!(trials[0].recovered, 0.0);
//! assert_eq!(trials[1].recovered, 1.0);
//!
//! // Five hundred clients with the same load together never empty their budgets.
//! let trials = scenario.with_clients(500).compare(&[Policy::guidance()], 0..2)?;
//! assert_eq!(trials[0].recovered, 0.0);
//! # Ok::<(), steadfast_storm::InvalidScenario>(())
//! ```
//!
//! - [`Scenario`]: [`Clients`], a [`SimulatedService`] and a list of [`ServiceFault`]s;
//!   [`scenarios`] has named ones;
//! - [`Policy`]: a strategy under test, with a new instance for each client;
//! - [`Summary`]: the result of one run, and [`Trials`]: the runs of one policy;
//! - [`Comparison`]: all of them, as tables or a picture for people, or JSON for machines;
//! - [`quiet`]: how useful a policy is for one client, which a fleet's table does not show;
//! - [`check`]: expectations of a fleet and of one client, in a file.
//!
//! `docs/storm.md` explains the method, its limits and the results.
//!
//! [`Orchestrator`]: steadfast::Orchestrator
//! [strategy]: steadfast::RetryStrategy

pub mod check;
mod model;
mod policies;
pub mod quiet;
mod report;
mod run;
pub mod scenarios;
mod summary;
mod trials;

pub use model::{
    Clients, Distribution, FaultEffect, InvalidScenario, Scenario, ServiceFault, SimulatedService,
};
pub use policies::Policy;
pub use report::Comparison;
pub use summary::{Bin, Summary};
pub use trials::Trials;

/// Compiles and runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/storm.md")]
struct Guide;
