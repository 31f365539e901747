//! The comparison of policies: tables and charts for people, JSON for machines.

mod svg;
mod text;
mod width;

use serde::Serialize;

use crate::model::Scenario;
use crate::trials::Trials;
pub(crate) use width::wrapped;

/// A scenario with the trials of its policies, for one or more sizes of the fleet.
///
/// `Display` prints tables and charts; `Serialize` writes every number.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Grows when a field changes its meaning.
    format: u32,
    scenario: Scenario,
    /// The policies for each size of the fleet.
    fleets: Vec<Vec<Trials>>,
}

impl Comparison {
    /// Combines a scenario with what [`Scenario::compare`] returned for each size of the
    /// fleet.
    pub fn new(scenario: &Scenario, fleets: Vec<Vec<Trials>>) -> Self {
        Self {
            format: 3,
            scenario: scenario.clone(),
            fleets,
        }
    }
}
