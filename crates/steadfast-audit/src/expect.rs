//! Demands on a client, for the exit status.

use std::fmt;
use std::str::FromStr;

use crate::judge::Rating;
use crate::report::AuditReport;

/// The least that a client must be.
///
/// ```
/// use steadfast_audit::SafetyDemand;
///
/// let safe: SafetyDemand = "safe".parse()?;
/// assert_eq!(safe.to_string(), "safe");
/// assert!("fast".parse::<SafetyDemand>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SafetyDemand {
    /// No case is unsafe.
    Safe,
    /// Nor a storm.
    Calm,
    /// Nor rude.
    Polite,
    /// Nor given up early.
    Good,
}

/// How an audit meets a demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DemandResult {
    /// It does.
    Met,
    /// The number of cases that break it.
    Broken(usize),
    /// Nothing breaks it, but what it is about was not seen.
    Unknown(String),
}

impl SafetyDemand {
    /// Every demand, with its name.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Safe, "safe"),
        (Self::Calm, "calm"),
        (Self::Polite, "polite"),
        (Self::Good, "good"),
    ];

    /// Compares an audit with the demand. A client is not called safe on cases that did not run.
    pub fn check(self, report: &AuditReport) -> DemandResult {
        let mildest = match self {
            Self::Safe => Rating::Unsafe,
            Self::Calm => Rating::Storm,
            Self::Polite => Rating::Rude,
            Self::Good => Rating::GivesUpEarly,
        };
        match report.count_from(mildest) {
            0 => report
                .doubt()
                .map_or(DemandResult::Met, DemandResult::Unknown),
            broken => DemandResult::Broken(broken),
        }
    }
}

impl FromStr for SafetyDemand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(_, name)| *name == text);
        found
            .map(|(demand, _)| demand)
            .ok_or_else(|| "must be safe, calm, polite or good".to_owned())
    }
}

impl fmt::Display for SafetyDemand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.into_iter().find(|(demand, _)| demand == self);
        f.write_str(named.map_or("", |(_, name)| name))
    }
}
