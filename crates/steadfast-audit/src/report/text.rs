//! The report for people: the answer first, then one line for each case.

use std::fmt::{self, Display, Formatter};

use super::{AuditReport, CaseReport, count_cases, show};
use crate::judge::Rating;

/// How many cases of a rating are shown, unless all are.
const SHOWN: usize = 12;
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
        writeln!(f, "audit of: {}", self.command)?;
        writeln!(
            f,
            "over {}, {}\n",
            self.protocol,
            count_cases(self.cases.len())
        )?;
        for line in self.answer() {
            writeln!(f, "{line}")?;
        }
        writeln!(f)?;
        for rating in Rating::ALL {
            let count = self.count(rating);
            writeln!(f, "{rating:<15} {count:>4}   {}", rating.meaning())?;
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
            let mut answer = vec![match self.doubt() {
                Some(doubt) => format!("{question} NOT KNOWN: {doubt}."),
                None => format!(
                    "{question} NO, not in these cases.\nIn {} a request may have been applied \
                     when its attempt failed, and it was not sent again.",
                    count_cases(critical)
                ),
            }];
            if !self.only.is_empty() {
                answer.push("Only the cases that --only names ran.".to_owned());
            }
            return answer;
        };
        let mut kinds: Vec<&str> = unsafe_cases().map(|case| &*case.kind).collect();
        kinds.dedup();
        vec![
            format!("{question} YES."),
            format!(
                "In {} of {} a {} was sent again although it may have been applied. For example:",
                unsafe_cases().count(),
                count_cases(critical),
                kinds.join(" or ")
            ),
            format!("  the server: {}, {}", example.fault, example.times),
            format!("  the client: {} ({})", example.reason, ends(example)),
            "A server that had applied the first one, and failed then, has applied it twice."
                .to_owned(),
        ]
    }

    /// Says what the ratings do not say.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let claimed = self.claims_success().count();
        if claimed > 0 {
            notes.push(format!(
                "The command ended with status 0 in {} in which every attempt failed: \
                 its status does not say whether the request succeeded.",
                count_cases(claimed)
            ));
        }
        for (kind, end) in &self.healthy_ends {
            if end.cause != crate::ExitCause::Exited(0) {
                notes.push(format!(
                    "After a successful {kind} the command ended with: {end}."
                ));
            }
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
        let shown = &groups[..groups.len().min(most)];
        let rows: Vec<_> = shown.iter().map(|group| group[0].columns()).collect();
        let widths = [0, 1, 2, 3].map(|column| {
            let lengths = rows.iter().map(|row| row[column].chars().count());
            lengths.max().unwrap_or_default()
        });
        for (group, row) in shown.iter().zip(rows) {
            f.write_str("  ")?;
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "{cell:<width$}  ")?;
            }
            f.write_str(&group[0].reason)?;
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

    /// Formats what stands before the reason.
    fn columns(&self) -> [String; 4] {
        [
            self.kind.clone(),
            format!("{}, {}", self.fault, self.times),
            self.attempts(),
            ends(self),
        ]
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
