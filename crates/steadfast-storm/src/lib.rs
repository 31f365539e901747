//! What a retry policy does to a fleet in an outage.
//!
//! A policy that looks kind to one request can be ruinous to the service behind it:
//! every client retries at the worst of times, the service spends what strength it
//! has on requests that nobody waits for any more, and the outage outlives its cause.
//! That cannot be seen in a unit test, and is dear to learn in production.
//!
//! Here a fleet of clients sends requests to a service that queues, slows down,
//! refuses and falls silent, in virtual time, a minute in well under a second. The
//! clients are no model: each runs the engine's own [`Orchestrator`] with the
//! [strategy] under test, budgets, jitter and all, so that what is seen is what the
//! code that ships would do.
//!
//! ```
//! use steadfast_storm::{Policy, Storm, Weather};
//!
//! let storm = Storm::default().lasting(90.0).in_weather(Weather::brownout());
//! let outcomes = storm.compare(&[Policy::at_once(), Policy::guidance()])?;
//!
//! // Three attempts at once keep the service overloaded long after the trouble is over;
//! // with a budget the fleet lets it recover.
//! let [at_once, guidance] = &outcomes[..] else { unreachable!() };
//! assert_eq!(at_once.back_after_seconds, None);
//! assert!(guidance.back_after_seconds.is_some());
//! # Ok::<(), steadfast_storm::Unfit>(())
//! ```
//!
//! - [`Storm`]: the fleet and the service, and how to run them;
//! - [`Weather`]: what befalls the service, and when;
//! - [`Policy`]: a strategy, made anew for each client;
//! - [`Outcome`]: what came of it.
//!
//! What is simulated, and what is not: requests arrive at random and independently
//! (Poisson), whatever became of those before; service times are exponential; there
//! is one queue in front of all workers, of bounded length; the service does not
//! notice that a client has stopped waiting. There is no network but its delay.
//!
//! [`Orchestrator`]: steadfast::Orchestrator
//! [strategy]: steadfast::RetryStrategy

mod agenda;
mod outcome;
mod policy;
mod report;
mod run;
mod service;
mod storm;
mod tally;
mod watched;
mod weather;

pub use outcome::{Outcome, Second};
pub use policy::Policy;
pub use report::Report;
pub use storm::{Storm, Unfit};
pub use weather::{Spell, Trouble, Weather};

/// The example of the guide is run like all others.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/storm.md")]
struct Guide;
