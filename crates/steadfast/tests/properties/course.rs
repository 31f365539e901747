//! Runs scripts through the orchestrator in virtual time, many at once, and
//! writes down all that can be seen from outside.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use steadfast::event::Decided;
use steadfast::report::{Outcome, Report};
use steadfast::strategy::Cause;
use steadfast::world::Roll;
use steadfast::{
    Failure, Orchestrator, RetryEvent, RetryStrategy, Step, Verdict, VirtualWorld, World,
};

use crate::scripts::{Left, Script};

/// What became of one request. Times count from the beginning of the world.
#[derive(Debug)]
pub(crate) struct Course {
    /// Its place among the scripts.
    pub(crate) number: usize,
    pub(crate) script: Script,
    pub(crate) deadline: Option<Duration>,
    /// When each attempt started.
    pub(crate) attempts: Vec<Duration>,
    pub(crate) waits: Vec<Wait>,
    pub(crate) events: Vec<Event>,
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

/// An event, kept.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Duration,
    pub(crate) request_id: u64,
    pub(crate) attempt: u32,
    pub(crate) retries: u32,
    pub(crate) failure: Failure,
    pub(crate) decided: Outcome,
}

#[derive(Debug)]
pub(crate) enum End {
    Succeeded,
    GaveUp(Verdict, Box<Report>),
    Dropped,
}

impl Course {
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

    /// What can be compared with the course of another run: all but the
    /// numbers that requests draw from a counter of the process.
    pub(crate) fn outline(&self) -> String {
        let decisions: Vec<_> = self
            .events
            .iter()
            .map(|event| (event.at, event.attempt, event.decided))
            .collect();
        let verdict = self.report().map(Report::verdict);
        format!(
            "{:?} {:?} {decisions:?} {verdict:?} {:?}",
            self.attempts, self.waits, self.ended
        )
    }
}

impl Event {
    /// Whether the strategy granted it, and so has to answer for it.
    pub(crate) fn is_granted_retry(&self) -> bool {
        self.is_retry() && !self.failure.reason.always_retry()
    }

    pub(crate) fn is_retry(&self) -> bool {
        matches!(self.decided, Outcome::Retry { .. })
    }

    pub(crate) fn is_capped(&self) -> bool {
        matches!(self.decided, Outcome::Retry { capped: true, .. })
    }
}

/// Runs all scripts under one strategy. After each step `watch` sees the
/// request that took it, the events that the step emitted, and the time.
pub(crate) fn run(
    strategy: &dyn RetryStrategy,
    scripts: &[Script],
    seed: u64,
    mut watch: impl FnMut(&Course, &[Event], Instant),
) -> Vec<Course> {
    let world = Watched {
        world: VirtualWorld::new().seeded(seed),
        events: RefCell::default(),
    };
    let mut tasks: Vec<Task<'_>> = scripts
        .iter()
        .enumerate()
        .map(|(number, script)| Task::new(number, script, strategy))
        .collect();
    while let Some(task) = tasks
        .iter_mut()
        .filter(|task| task.course.end.is_none())
        .min_by_key(|task| task.due)
    {
        // Always the one whose turn comes first, so time never goes backwards.
        world.world.advance(task.due - world.world.elapsed());
        task.take_step(&world);
        let new = world.events.take();
        task.course.events.extend_from_slice(&new);
        watch(&task.course, &new, world.now());
    }
    tasks.into_iter().map(|task| task.course).collect()
}

struct Task<'s> {
    /// None once it was dropped.
    request: Option<Orchestrator<&'s dyn RetryStrategy>>,
    course: Course,
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
            course: Course {
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

    fn take_step(&mut self, world: &Watched) {
        let now = world.world.elapsed();
        let step_number = self.steps;
        self.steps += 1;
        match self.course.script.left {
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
            Step::Ask(_) | Step::LeftAlone => unreachable!("{step:?} of a shipped strategy"),
        }
    }

    fn attempt(&mut self, now: Duration) {
        let script = &self.course.script;
        let (takes, failure) = match script.tries.get(self.course.attempts.len()) {
            Some(one) => (one.takes, one.failure.clone()),
            None => (Duration::ZERO, None),
        };
        self.course.attempts.push(now);
        (self.due, self.next) = match self.course.deadline {
            Some(deadline) if script.cut && now + takes >= deadline => {
                (deadline.max(now), Next::AttemptIsCut)
            }
            Some(_) | None => (now + takes, Next::AttemptEnds(failure)),
        };
    }

    fn wait(&mut self, delay: Duration, now: Duration) {
        self.course.waits.push(Wait {
            from: now,
            delay,
            after_attempts: self.course.attempts.len(),
        });
        let slept = if self.course.script.woken_early {
            delay / 2
        } else {
            delay
        };
        (self.due, self.next) = (now + slept, Next::WaitIsOver);
    }

    fn end(&mut self, end: End, now: Duration) {
        self.course.end = Some(end);
        self.course.ended = now;
    }
}

/// A virtual world that keeps the events.
struct Watched {
    world: VirtualWorld,
    events: RefCell<Vec<Event>>,
}

impl World for Watched {
    fn now(&self) -> Instant {
        self.world.now()
    }

    fn roll(&self) -> Roll {
        self.world.roll()
    }

    fn observe(&self, event: &RetryEvent<'_>) {
        let decided = match event.decided() {
            Decided::Retry { delay, capped } => Outcome::Retry { delay, capped },
            Decided::Refused(refusal) => Outcome::Refused(refusal.cause()),
        };
        self.events.borrow_mut().push(Event {
            at: self.world.elapsed(),
            request_id: event.request_id(),
            attempt: event.attempt(),
            retries: event.request().retries(),
            failure: event.failure().clone(),
            decided,
        });
    }
}
