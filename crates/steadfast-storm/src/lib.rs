//! Simulates what a retry strategy does to a fleet and its service during an outage.
//!
//! A strategy that helps one request can ruin the service behind it. All clients retry
//! at the same bad moment, the service works on requests whose clients have stopped
//! waiting, and the outage outlives its cause. A unit test cannot show that, and
//! learning it in production is expensive.
//!
//! Here a fleet of clients sends requests to a service that queues, slows down, rejects
//! and stops responding. Time is virtual: a simulated minute takes well under a second.
//! Each client runs the engine's own [`Orchestrator`] with the [strategy] under test,
//! including budgets and jitter. So the decisions are those of production code.
//!
//! ```
//! use steadfast_storm::{Candidate, FaultSchedule, Simulation};
//!
//! let simulation = Simulation::default()
//!     .with_duration(90.0)
//!     .with_faults(FaultSchedule::brownout());
//! let summaries = simulation.compare(&[Candidate::immediate(), Candidate::guidance()])?;
//!
//! // Immediate retries keep the service overloaded long after the fault has ended;
//! // with a budget the fleet lets it recover.
//! let [immediate, guidance] = &summaries[..] else { unreachable!() };
//! assert_eq!(immediate.recovered_after_seconds, None);
//! assert!(guidance.recovered_after_seconds.is_some());
//! # Ok::<(), steadfast_storm::InvalidSimulation>(())
//! ```
//!
//! - [`Simulation`]: the clients, the network, the service, and the faults;
//! - [`FaultSchedule`]: which [`ServiceFault`]s happen, and when;
//! - [`Candidate`]: a strategy under test, with a new instance for each client;
//! - [`Summary`]: the result of one candidate, in total and second by second;
//! - [`Comparison`]: all summaries, as a table for people or JSON for machines.
//!
//! The model: requests arrive at random and independently (Poisson). Service times are
//! exponential. One queue of bounded length feeds all workers. The service does not
//! notice that a client has stopped waiting. The network has a delay and no losses.
//! `docs/storm.md` explains how to read the results.
//!
//! [`Orchestrator`]: steadfast::Orchestrator
//! [strategy]: steadfast::RetryStrategy

mod candidate;
mod comparison;
mod faults;
mod run;
mod simulation;
mod summary;

pub use candidate::Candidate;
pub use comparison::Comparison;
pub use faults::{FaultEffect, FaultSchedule, ServiceFault};
pub use simulation::{InvalidSimulation, Simulation};
pub use summary::{SecondStats, Summary};

/// Compiles and runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/storm.md")]
struct Guide;
