//! The report for people: the answer first, then one line for each case.

use std::fmt::{self, Display, Formatter};

use super::{AuditReport, CaseReport, show};
use crate::judge::Rating;

/// How many cases of a rating are shown, unless all are.
const SHOWN: usize = 12;
/// The columns before the reason.
const COLUMNS: [usize; 4] = [8, 48, 25, 8];

impl Display for AuditReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.text(SHOWN, f)
    }
}

impl AuditReport {
    /// Formats the report with every case.
    pub fn with_all_cases(&self) -> impl Display {
        fmt::from_fn(|f| self.text(usize::MAX, f))
    }

    fn text(&self, most: usize, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "audit of: {}\n", self.command)?;
        for line in self.answer() {
            writeln!(f, "{line}")?;
        }
        writeln!(f)?;
        for rating in Rating::ALL {
            let count = self.count(rating);
            writeln!(f, "{rating:<15} {count:>4} cases   {}", rating.meaning())?;
        }
        for note in self.notes() {
            writeln!(f, "\n{note}")?;
        }
        for rating in Rating::ALL {
            self.section(rating, most, f)?;
        }
        match most {
            usize::MAX => Ok(()),
            _ => writeln!(
                f,
                "\n--all shows every case; --only NAME repeats some, as in --only post/closed/once"
            ),
        }
    }

    /// Answers the question that brought the user here.
    pub(super) fn answer(&self) -> Vec<String> {
        let critical = self
            .cases
            .iter()
            .filter(|case| case.may_apply_twice)
            .count();
        let unsafe_cases = || {
            self.cases
                .iter()
                .filter(|case| case.rating == Rating::Unsafe)
        };
        let question = "May a request be applied twice, such as a payment?";
        let Some(example) = unsafe_cases().next() else {
            return vec![match self.doubt() {
                Some(doubt) => format!("{question} NOT KNOWN: {doubt}."),
                None => format!(
                    "{question} NO, not in these cases.\nIn {critical} cases it may have been \
                     applied when its attempt failed, and it was not sent again."
                ),
            }];
        };
        let mut kinds: Vec<&str> = unsafe_cases().map(|case| &*case.kind).collect();
        kinds.dedup();
        vec![
            format!("{question} YES."),
            format!(
                "In {} of {critical} cases a {} was sent again although it may have been applied. For example:",
                unsafe_cases().count(),
                kinds.join(" or ")
            ),
            format!(
                "  {}, {}: {} ({})",
                example.fault,
                example.times,
                example.reason,
                ends(example)
            ),
        ]
    }

    /// Says what the ratings do not say.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let claimed = self.claims_success().count();
        if claimed > 0 {
            notes.push(format!(
                "The command ended with status 0 in {claimed} cases in which every attempt failed: \
                 its status does not say whether the request succeeded."
            ));
        }
        for (kind, end) in &self.healthy_ends {
            if end.cause != crate::ExitCause::Exited(0) {
                notes.push(format!(
                    "After a successful {kind} the command ended with: {end}."
                ));
            }
        }
        if self.escaped_processes > 0 {
            notes.push(format!(
                "{} processes had left the command's process group, and were killed.",
                self.escaped_processes
            ));
        }
        if self
            .cases
            .iter()
            .any(|case| case.ends.iter().any(|end| end.left_processes))
        {
            notes.push(
                "The command left processes running when it ended; they were killed.".to_owned(),
            );
        }
        let parts: Vec<String> = self
            .unseen
            .iter()
            .map(|unseen| format!("  {}: {}", unseen.part, unseen.reason))
            .collect();
        if !parts.is_empty() {
            notes.push(format!("Not audited:\n{}", parts.join("\n")));
        }
        notes
    }

    fn section(&self, rating: Rating, most: usize, f: &mut Formatter<'_>) -> fmt::Result {
        // Good cases are left out, unless all are asked for.
        let most = if rating == Rating::Good && most < usize::MAX {
            0
        } else {
            most
        };
        let cases = self.cases.iter().filter(|case| case.rating == rating);
        let mut groups: Vec<Vec<&CaseReport>> = Vec::new();
        for case in cases {
            match groups.last_mut() {
                Some(group) if most < usize::MAX && group[0].is_like(case) => group.push(case),
                _ => groups.push(vec![case]),
            }
        }
        if groups.is_empty() || most == 0 {
            return Ok(());
        }
        writeln!(f, "\n{rating}")?;
        for group in groups.iter().take(most) {
            write!(f, "  {}", group[0].line())?;
            match group.len() {
                1 => writeln!(f)?,
                more => writeln!(f, " (+{} alike)", more - 1)?,
            }
        }
        let more: usize = groups.iter().skip(most).map(Vec::len).sum();
        match more {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}

impl CaseReport {
    /// Decides whether the case differs only in how often the fault occurs.
    fn is_like(&self, other: &Self) -> bool {
        (&self.kind, &self.fault) == (&other.kind, &other.fault)
    }

    /// Formats the case as one line.
    pub(super) fn line(&self) -> String {
        let [kind, fault, attempts, end] = COLUMNS;
        format!(
            "{:<kind$} {:<fault$} {:<attempts$} {:<end$} {}",
            self.kind,
            format!("{}, {}", self.fault, self.times),
            self.attempts(),
            ends(self),
            self.reason,
        )
    }

    /// Formats the number of attempts, and the delays between them.
    pub(super) fn attempts(&self) -> String {
        let retries = self.retries();
        let delays: Vec<String> = retries
            .iter()
            .skip(1)
            .map(|retry| show(retry.delay))
            .collect();
        match delays.len() {
            0 => format!("{}×", retries.len()),
            1..=4 => format!("{}× +{}", retries.len(), delays.join(" +")),
            _ => format!("{}× +{} …", retries.len(), delays[..4].join(" +")),
        }
    }
}

/// Formats how the commands of a case ended.
pub(super) fn ends(case: &CaseReport) -> String {
    match case.ends.split_first() {
        Some((first, rest)) if rest.iter().all(|end| end.cause == first.cause) => first.to_string(),
        Some(_) => "various".to_owned(),
        None => String::new(),
    }
}
