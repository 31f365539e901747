//! Faults of the service, and their schedule.

use std::fmt;

use serde::Serialize;

/// The faults of a run, each with its time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FaultSchedule {
    name: &'static str,
    faults: Vec<ServiceFault>,
}

/// An effect on the service, and when it is active.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServiceFault {
    /// The start, in seconds.
    #[serde(rename = "from_s")]
    pub from: f64,
    /// The end, in seconds.
    #[serde(rename = "until_s")]
    pub until: f64,
    /// The effect.
    pub effect: FaultEffect,
}

/// An effect that a fault has on the service.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FaultEffect {
    /// Refuses connections: no byte of a request is sent.
    RefuseConnections,
    /// Accepts requests and never responds.
    NoResponse,
    /// Processes this share of the requests and responds with an error.
    Fail {
        /// From 0 to 1.
        share: f64,
    },
    /// Multiplies service times by this factor.
    Slow {
        /// At least 1.
        factor: f64,
    },
    /// Admits requests at this share of the service's capacity and throttles the others.
    Throttle {
        /// From 0 to 1.
        share: f64,
        /// When throttled clients shall come back, in seconds, if the service says so.
        #[serde(rename = "hint_s")]
        hint: Option<f64>,
    },
}

impl FaultSchedule {
    /// No faults.
    pub fn healthy() -> Self {
        Self::named("healthy")
    }

    /// Refuses connections for one second.
    pub fn blip() -> Self {
        Self::named("blip").with(20.0, 21.0, FaultEffect::RefuseConnections)
    }

    /// Refuses connections for 20 seconds.
    pub fn outage() -> Self {
        Self::named("outage").with(20.0, 40.0, FaultEffect::RefuseConnections)
    }

    /// Does not respond for 20 seconds.
    pub fn unresponsive() -> Self {
        Self::named("unresponsive").with(20.0, 40.0, FaultEffect::NoResponse)
    }

    /// Triples service times for 20 seconds.
    pub fn brownout() -> Self {
        Self::named("brownout").with(20.0, 40.0, FaultEffect::Slow { factor: 3.0 })
    }

    /// Fails 30 % of the requests for 40 seconds.
    pub fn errors() -> Self {
        Self::named("errors").with(20.0, 60.0, FaultEffect::Fail { share: 0.3 })
    }

    /// Admits 40 % of the capacity for 20 seconds and sends the others away for two.
    pub fn throttling() -> Self {
        let hint = Some(2.0);
        Self::named("throttling").with(20.0, 40.0, FaultEffect::Throttle { share: 0.4, hint })
    }

    /// Returns all of the above.
    pub fn all() -> Vec<Self> {
        vec![
            Self::healthy(),
            Self::blip(),
            Self::outage(),
            Self::unresponsive(),
            Self::brownout(),
            Self::errors(),
            Self::throttling(),
        ]
    }

    /// Adds a fault. Where two overlap, the one that was added first is active.
    #[must_use]
    pub fn with(mut self, from: f64, until: f64, effect: FaultEffect) -> Self {
        self.faults.push(ServiceFault {
            from,
            until,
            effect,
        });
        self
    }

    /// Returns the name of the schedule that this one started from.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the faults, in the order in which they were added.
    pub fn faults(&self) -> &[ServiceFault] {
        &self.faults
    }

    /// Returns the active effect at a time.
    pub(crate) fn active_at(&self, seconds: f64) -> Option<FaultEffect> {
        let active = |fault: &&ServiceFault| (fault.from..fault.until).contains(&seconds);
        Some(self.faults.iter().find(active)?.effect)
    }

    /// Returns the end of the last fault; 0 if there is none.
    pub(crate) fn end(&self) -> f64 {
        self.faults
            .iter()
            .map(|fault| fault.until)
            .fold(0.0, f64::max)
    }

    const fn named(name: &'static str) -> Self {
        Self {
            name,
            faults: Vec::new(),
        }
    }
}

impl fmt::Display for FaultSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.faults.is_empty() {
            return f.write_str("none");
        }
        for (index, fault) in self.faults.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ServiceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            until,
            effect,
        } = self;
        write!(f, "{effect}, from {from} s to {until} s")
    }
}

impl fmt::Display for FaultEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RefuseConnections => f.write_str("connections are refused"),
            Self::NoResponse => f.write_str("no responses"),
            Self::Fail { share } => write!(f, "{:.0} % of the requests fail", share * 100.0),
            Self::Slow { factor } => write!(f, "requests take {factor} times as long"),
            Self::Throttle { share, hint } => {
                let percent = share * 100.0;
                write!(f, "throttled to {percent:.0} % of the capacity")?;
                match hint {
                    Some(hint) => write!(f, ", rejected clients wait {hint} s"),
                    None => Ok(()),
                }
            }
        }
    }
}
