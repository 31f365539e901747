//! Runs scripts through the orchestrator in virtual time, many at once, and
//! writes down all that can be seen from outside.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use steadfast::report::{Outcome, Report};
use steadfast::strategy::Cause;
use steadfast::world::RecordedEvent;
use steadfast::{Failure, Orchestrator, RetryStrategy, Step, Verdict, VirtualWorld, World};

use crate::scripts::{Left, Script};

/// What became of one request. Times count from the beginning of the world.
#[derive(Debug)]
pub(crate) struct Simulated {
    /// Its place among the scripts.
    pub(crate) number: usize,
    pub(crate) script: Script,
    pub(crate) deadline: Option<Duration>,
    /// When each attempt started.
    pub(crate) attempts: Vec<Duration>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) events: Vec<RecordedEvent>,
    pub(crate) end: Option<End>,
    pub(crate) ended: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wait {
    pub(crate) from: Duration,
    pub(crate) delay: Duration,
    /// How many attempts had been made.
    pub(crate) after_attempts: usize,
}

#[derive(Debug)]
pub(crate) enum End {
    Succeeded,
    GaveUp(Verdict, Box<Report>),
    Dropped,
}

impl Simulated {
    pub(crate) fn succeeded(&self) -> bool {
        matches!(self.end, Some(End::Succeeded))
    }

    pub(crate) fn report(&self) -> Option<&Report> {
        match &self.end {
            Some(End::GaveUp(_, report)) => Some(report),
            Some(End::Succeeded | End::Dropped) | None => None,
        }
    }

    pub(crate) fn was_cancelled(&self) -> bool {
        let refusal = self.report().and_then(Report::refusal);
        refusal.is_some_and(|refusal| refusal.cause() == Cause::Cancelled)
    }

    /// What can be compared with the simulated of another run: all but the
    /// numbers that requests draw from a counter of the process.
    pub(crate) fn outline(&self) -> String {
        let decisions: Vec<_> = self
            .events
            .iter()
            .map(|event| (event.at, event.attempt, event.outcome))
            .collect();
        let verdict = self.report().map(Report::verdict);
        format!(
            "{:?} {:?} {decisions:?} {verdict:?} {:?}",
            self.attempts, self.waits, self.ended
        )
    }
}

/// Whether the strategy granted it, and so has to answer for it.
pub(crate) fn is_granted_retry(event: &RecordedEvent) -> bool {
    is_retry(event) && !event.failure.reason.always_retry()
}

/// Whether an attempt follows, unless the request is dropped or cancelled.
pub(crate) fn is_retry(event: &RecordedEvent) -> bool {
    matches!(event.outcome, Outcome::Retry { capped: false, .. })
}

pub(crate) fn is_capped(event: &RecordedEvent) -> bool {
    matches!(event.outcome, Outcome::Retry { capped: true, .. })
}

/// Runs all scripts under one strategy. After each step `watch` sees the
/// request that took it, the events that the step emitted, and the time.
pub(crate) fn run(
    strategy: &dyn RetryStrategy,
    scripts: &[Script],
    seed: u64,
    mut watch: impl FnMut(&Simulated, &[RecordedEvent], Instant),
) -> Vec<Simulated> {
    let world = VirtualWorld::starting_at(epoch());
    let world = world.seeded(seed).recording();
    let mut tasks: Vec<Task<'_>> = scripts
        .iter()
        .enumerate()
        .map(|(number, script)| Task::new(number, script, strategy))
        .collect();
    while let Some(task) = tasks
        .iter_mut()
        .filter(|task| task.simulated.end.is_none())
        .min_by_key(|task| task.due)
    {
        // Always the one whose turn comes first, so time never goes backwards.
        world.advance(task.due - world.elapsed());
        task.take_step(&world);
        let new = world.take_events();
        task.simulated.events.extend_from_slice(&new);
        watch(&task.simulated, &new, world.now());
    }
    tasks.into_iter().map(|task| task.simulated).collect()
}

/// Returns the beginning of all worlds. Load-aware strategies measure attempts in microseconds of
/// the process, so runs that begin at different instants can differ by a few.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(|| VirtualWorld::new().now())
}

struct Task<'s> {
    /// None once it was dropped.
    request: Option<Orchestrator<&'s dyn RetryStrategy>>,
    simulated: Simulated,
    due: Duration,
    next: Next,
    steps: usize,
}

/// What is to happen to the request when its turn comes.
enum Next {
    Begin,
    AttemptEnds(Option<Failure>),
    AttemptIsCut,
    WaitIsOver,
    Cancel,
}

impl<'s> Task<'s> {
    fn new(number: usize, script: &Script, strategy: &'s dyn RetryStrategy) -> Self {
        Self {
            request: Some(Orchestrator::new(strategy, script.call())),
            simulated: Simulated {
                number,
                script: script.clone(),
                deadline: script.timeout.map(|timeout| script.starts + timeout),
                attempts: Vec::new(),
                waits: Vec::new(),
                events: Vec::new(),
                end: None,
                ended: Duration::ZERO,
            },
            due: script.starts,
            next: Next::Begin,
            steps: 0,
        }
    }

    fn take_step(&mut self, world: &VirtualWorld) {
        let now = world.elapsed();
        let step_number = self.steps;
        self.steps += 1;
        match self.simulated.script.left {
            Some((step, Left::Dropped)) if step == step_number => {
                self.request = None;
                return self.end(End::Dropped, now);
            }
            Some((step, Left::Cancelled)) if step == step_number => self.next = Next::Cancel,
            Some(_) | None => {}
        }
        let request = self.request.as_mut().expect("it has not ended");
        let step = match std::mem::replace(&mut self.next, Next::Begin) {
            Next::Begin => request.begin(world),
            Next::AttemptEnds(Some(failure)) => request.handle_failure(failure, world),
            Next::AttemptEnds(None) => {
                request.handle_success(world);
                return self.end(End::Succeeded, now);
            }
            Next::AttemptIsCut => request.handle_attempt_timeout(world),
            Next::WaitIsOver => request.handle_waited(world),
            Next::Cancel => request.handle_cancel(world),
        };
        match step {
            Step::Attempt => self.attempt(now),
            Step::Wait { delay, .. } => self.wait(delay, now),
            Step::GiveUp(verdict) => {
                let report = Box::new(request.take_report());
                self.end(End::GaveUp(verdict, report), now);
            }
            Step::Ask | Step::LeftAlone => unreachable!("{step:?} of a shipped strategy"),
        }
    }

    fn attempt(&mut self, now: Duration) {
        let script = &self.simulated.script;
        let (takes, failure) = match script.tries.get(self.simulated.attempts.len()) {
            Some(one) => (one.takes, one.failure.clone()),
            None => (Duration::ZERO, None),
        };
        self.simulated.attempts.push(now);
        (self.due, self.next) = match self.simulated.deadline {
            Some(deadline) if script.cut && now + takes >= deadline => {
                (deadline.max(now), Next::AttemptIsCut)
            }
            Some(_) | None => (now + takes, Next::AttemptEnds(failure)),
        };
    }

    fn wait(&mut self, delay: Duration, now: Duration) {
        self.simulated.waits.push(Wait {
            from: now,
            delay,
            after_attempts: self.simulated.attempts.len(),
        });
        let slept = if self.simulated.script.woken_early {
            delay / 2
        } else {
            delay
        };
        (self.due, self.next) = (now + slept, Next::WaitIsOver);
    }

    fn end(&mut self, end: End, now: Duration) {
        self.simulated.end = Some(end);
        self.simulated.ended = now;
    }
}
