//! Plans the decisions about a request that fails again and again.

use std::fmt;
use std::time::{Duration, Instant};

use super::{Planned, Unexplainable};
use crate::call::Call;
use crate::error::Time;
use crate::failure::Failure;
use crate::orchestrator::{Orchestrator, Step};
use crate::reason::{LOAD_SHED, Reason};
use crate::report::{Outcome, Verdict};
use crate::strategy::{Cause, Described, Refusal, RetryStrategy};
use crate::world::{Roll, VirtualWorld, any_instant};

/// Predicts the decisions about a sequence of failures, if each attempt fails at once.
///
/// ```
/// use std::time::Duration;
/// use steadfast::explain::plan;
/// use steadfast::{BestEffort, Call, Failure, reason};
///
/// let call = Call::new("get").idempotent(true).timeout(Duration::from_millis(2500));
/// let locked = std::iter::repeat(Failure::responded(&reason::THROTTLED));
/// let plan = plan(&BestEffort::default(), &call, locked)?;
/// assert_eq!(plan.rows().len(), 13); // at most 13 attempts in 2.5 s
/// # Ok::<(), steadfast::explain::Unexplainable>(())
/// ```
pub fn plan(
    strategy: &dyn RetryStrategy,
    call: &Call,
    failures: impl IntoIterator<Item = Failure>,
) -> Result<Plan, Unexplainable> {
    let now = any_instant();
    let failures: Vec<Failure> = failures.into_iter().take(Plan::MAX_ROWS).collect();
    let run = |roll| run(strategy, call, &failures, now, roll);
    let (mut plan, least) = (run(Roll::ONE)?, run(Roll::ZERO)?);
    if plan.verdict == Some(Verdict::Shed) {
        // A strategy that sheds some requests admits the one with the lowest roll.
        return Ok(least);
    }
    for (row, other) in plan.rows.iter_mut().zip(&least.rows) {
        match (&mut row.decided, other.decided) {
            (Planned::Retry { shortest, .. }, Planned::Retry { longest, .. }) => {
                *shortest = longest;
            }
            // The longest delay reaches the deadline, the shortest does not.
            (
                decided @ Planned::Refused(Cause::Deadline),
                Planned::Retry {
                    longest: shortest, ..
                },
            ) => {
                *decided = Planned::Retry {
                    shortest,
                    longest: row.would_wait.unwrap_or(shortest),
                    capped: true,
                };
            }
            _ => {}
        }
    }
    Ok(plan)
}

/// The outcome of [`plan`], as data and, with `{}`, as a table.
#[derive(Clone, Debug)]
pub struct Plan {
    operation: &'static str,
    rows: Vec<PlanRow>,
    verdict: Option<Verdict>,
    strategy: String,
}

/// One attempt of a plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanRow {
    /// The number of the attempt; the first is 1. Zero if the request is shed.
    pub attempt: u32,
    /// The time of its failure, counted from the start, if every delay is the longest.
    pub at: Duration,
    /// The reason of its failure.
    pub reason: &'static Reason,
    /// The decision.
    pub decided: Planned,
    /// The delay that a refused retry would have had, if the strategy states it.
    pub would_wait: Option<Duration>,
    /// The level of the strategy's budget afterwards, if it has one.
    pub budget_left: Option<u64>,
}

impl Plan {
    /// The most rows of a plan, for requests without any bound.
    pub const MAX_ROWS: usize = 1000;

    /// Returns the attempts.
    pub fn rows(&self) -> &[PlanRow] {
        &self.rows
    }

    /// Returns the verdict; `None` if there would be another attempt.
    pub const fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    /// Returns the description of the strategy.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under {}", self.operation, self.strategy)?;
        for row in &self.rows {
            let (at, reason, decided) = (Time(row.at).to_string(), row.reason, row.decided);
            write!(f, "\n  #{:<3} {at:>8}  {reason}  {decided}", row.attempt)?;
            if let Planned::Refused(cause) = decided {
                write!(f, ": {cause}{}", would_wait(cause, row.would_wait))?;
            }
            if let Some(left) = row.budget_left {
                write!(f, "  budget {left}")?;
            }
        }
        match self.verdict {
            Some(verdict) => write!(f, "\n  {verdict}"),
            None => Ok(()),
        }
    }
}

/// Plans with one roll of the dice, which makes every delay the longest or the shortest.
fn run(
    strategy: &dyn RetryStrategy,
    call: &Call,
    failures: &[Failure],
    now: Instant,
    roll: Roll,
) -> Result<Plan, Unexplainable> {
    let fork = strategy.info().fork(now).ok_or(Unexplainable {
        why: "the strategy has no `fork`, so trying it out would change it",
    })?;
    let world = VirtualWorld::starting_at(now).rolling(roll);
    let mut request = Orchestrator::new(fork, call.clone());
    let mut plan = Plan {
        operation: call.operation,
        rows: Vec::new(),
        verdict: None,
        strategy: Described(strategy).to_string(),
    };
    let mut failures = failures.iter();
    let mut step = request.begin(&world);
    loop {
        step = match step {
            Step::Attempt => {
                let Some(failure) = failures.next() else {
                    return Ok(plan);
                };
                let (attempt, at) = (request.request().attempts(), world.elapsed());
                let next = request.handle_failure(failure.clone(), &world);
                plan.rows.push(PlanRow {
                    attempt,
                    at,
                    reason: failure.reason,
                    decided: decided(&next, &request),
                    would_wait: request.refusal().and_then(Refusal::delay),
                    budget_left: request.strategy().info().budget_left(),
                });
                next
            }
            Step::Wait { delay, .. } => {
                world.advance(delay);
                request.handle_waited(&world)
            }
            Step::Ask | Step::LeftAlone => return Ok(plan),
            Step::GiveUp(verdict) => {
                if verdict == Verdict::Shed {
                    plan.rows.push(PlanRow {
                        attempt: 0,
                        at: world.elapsed(),
                        reason: &LOAD_SHED,
                        decided: Planned::Refused(Cause::Shed),
                        would_wait: request.refusal().and_then(Refusal::delay),
                        budget_left: request.strategy().info().budget_left(),
                    });
                }
                plan.verdict = Some(verdict);
                return Ok(plan);
            }
        };
    }
}

fn decided<S: RetryStrategy>(step: &Step, request: &Orchestrator<S>) -> Planned {
    if let Step::Ask = step {
        return Planned::Asks;
    }
    let last = request.request().history().last();
    match last.map(|record| record.outcome) {
        Some(Outcome::Retry { delay, capped }) => Planned::Retry {
            shortest: delay,
            longest: delay,
            capped,
        },
        Some(Outcome::Refused(cause)) => Planned::Refused(cause),
        Some(Outcome::Undecided) | None => Planned::Refused(Cause::NotRetryable),
    }
}

/// Returns how long a retry that would miss the deadline would have waited, or when to try
/// a request again that is shed, as text.
pub(super) fn would_wait(cause: Cause, delay: Option<Duration>) -> String {
    match (cause, delay) {
        (Cause::Deadline, Some(delay)) => format!(", it would have waited {}", Time(delay)),
        (Cause::Shed, Some(delay)) => format!(", try again in {}", Time(delay)),
        _ => String::new(),
    }
}
