//! A target and the measured value.

use std::fmt;

/// Whether something that was to be reached was.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    target: String,
    measured: String,
    met: Option<bool>,
}

impl Finding {
    pub(crate) fn new(target: String, measured: String, met: bool) -> Self {
        Self {
            target,
            measured,
            met: Some(met),
        }
    }

    pub(crate) fn unmeasured(target: String, why: impl fmt::Display) -> Self {
        Self {
            target,
            measured: why.to_string(),
            met: None,
        }
    }

    /// A target that was not measured is not met.
    pub(crate) fn is_met(&self) -> bool {
        self.met == Some(true)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            measured,
            met,
        } = self;
        let word = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        write!(f, "{word:>12}  {target}: {measured}")
    }
}
