//! The report of an audit of an SDK.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::cases::SdkCase;
use super::judge::{SdkRating, SdkRun, judge};
use crate::report::show;

/// The result of an audit of an SDK.
#[derive(Clone, Debug, Serialize)]
pub struct SdkAuditReport {
    /// The version of the format.
    pub format: u32,
    /// The name and the version of the SDK, as its driver says.
    pub sdk: String,
    /// The cases, in the order of the file.
    pub cases: Vec<SdkCaseReport>,
}

/// The result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct SdkCaseReport {
    /// The operation and the fault.
    pub title: String,
    /// The document that asks for the behaviour.
    pub rule: String,
    /// The rating.
    pub rating: SdkRating,
    /// What it is based on.
    pub reason: String,
    /// How many attempts arrived.
    pub sent: usize,
    /// How often a write was applied.
    pub applied: usize,
    /// The kind of error, or nothing after a success.
    pub error: Option<String>,
    /// Whether the SDK says that the operation may have been applied.
    pub ambiguous: Option<bool>,
    /// The SDK's reasons for retries.
    pub reasons: Vec<String>,
    /// The delays between attempts.
    #[serde(skip)]
    delays: Vec<Duration>,
}

impl SdkCaseReport {
    pub(super) fn new(case: &SdkCase, run: &SdkRun) -> Self {
        let (rating, reason) = judge(case, run);
        let failed = !run.answer.ok && !run.answer.unsupported;
        Self {
            title: case.title(),
            rule: case.rule.clone(),
            rating,
            reason,
            sent: run.arrivals.len(),
            applied: run.applied,
            error: failed.then(|| {
                run.answer
                    .error
                    .clone()
                    .unwrap_or_else(|| "error".to_owned())
            }),
            ambiguous: run.answer.ambiguous.filter(|_| failed),
            reasons: run.answer.reasons.clone(),
            delays: run
                .arrivals
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .collect(),
        }
    }
}

impl SdkAuditReport {
    /// Returns the number of cases with a rating.
    pub fn count(&self, rating: SdkRating) -> usize {
        self.cases
            .iter()
            .filter(|case| case.rating == rating)
            .count()
    }

    /// Formats the report as JSON.
    pub fn to_json(&self) -> String {
        // It has no maps with keys that are not text, and no values that fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl fmt::Display for SdkAuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "audit of: {}\n", self.sdk)?;
        for rating in SdkRating::ALL {
            writeln!(f, "{rating:<9} {:>4} cases", self.count(rating))?;
        }
        for rating in SdkRating::ALL {
            let cases = self.cases.iter().filter(|case| case.rating == rating);
            let cases: Vec<_> = cases.collect();
            if cases.is_empty() || rating == SdkRating::Conforms {
                continue;
            }
            writeln!(f, "\n{rating}")?;
            for case in cases {
                let delays: Vec<String> = case
                    .delays
                    .iter()
                    .take(5)
                    .map(|delay| show(*delay))
                    .collect();
                let delays = match delays.len() {
                    0 => String::new(),
                    _ => format!(" +{}", delays.join(" +")),
                };
                let attempts = format!("{}×{delays}", case.sent);
                writeln!(
                    f,
                    "  {:<48} {attempts:<24} {} ({})",
                    case.title, case.reason, case.rule
                )?;
            }
        }
        Ok(())
    }
}
