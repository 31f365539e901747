//! Decides how many first attempts a brake admits.
//!
//! ```text
//!  calm ── bad responses ──► watching ── most are bad ──► braking
//!    ▲                          │                            │
//!    └────── good responses ────┴◄──── everything admitted ──┘
//! ```

use std::time::Duration;

use crate::world::Roll;

/// What is heard of an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    /// It succeeded after these seconds.
    Success(f32),
    /// It timed out, after these seconds if they are known.
    Timeout(Option<f32>),
    /// The peer throttled it.
    Throttled,
    /// It failed otherwise, which says nothing about the load of the peer.
    Error,
}

/// The state of a brake. Times are seconds. A program may have a million brakes, so only
/// moments have double precision.
#[derive(Clone, Debug)]
pub(super) struct Control {
    learnt: Option<f32>,
    /// The share of first attempts that is admitted.
    admitted: f32,
    /// The share of recent attempts that timed out, and that was throttled.
    timeouts: f32,
    throttled: f32,
    /// The admitted share before the last cut.
    before_cut: f32,
    step: f32,
    /// The usual latency while all is well.
    usual: f32,
    /// The latency of the last success that was measured.
    last: f32,
    /// The mean time between responses.
    gap: f32,
    last_cut: f64,
    /// The last time that the admitted share changed.
    last_change: f64,
    last_admission: f64,
    last_heard: f64,
    last_sample: f64,
    /// The number of calls at the last response.
    calls: u64,
    pub(super) shed: u64,
}

/// The smallest share that is admitted.
const LEAST: f32 = 1.0 / 16.0;
/// The factor of a cut. A smaller one helps an overloaded peer more, and loses more if the
/// peer was only silent for a moment.
const CUT: f32 = 0.7;
/// The share of timeouts above which it brakes.
const MOSTLY_TIMEOUTS: f32 = 0.7;
/// The share of throttled attempts above which it brakes. Throttling is cheap for the peer.
const MOSTLY_THROTTLED: f32 = 0.9;
/// The share of bad responses below which all is well.
const WELL: f32 = 0.05;
/// The attempt timeout until one is known.
const USUAL_TIMEOUT: f32 = 1.0;
/// The time between two measured calls, while all is well.
const SAMPLE_EVERY: f64 = 1.0 / 50.0;

impl Control {
    pub(super) fn new() -> Self {
        Self {
            learnt: None,
            admitted: 1.0,
            timeouts: 0.0,
            throttled: 0.0,
            before_cut: 1.0,
            last_cut: f64::NEG_INFINITY,
            step: 0.0,
            usual: 0.0,
            last: 0.0,
            last_change: 0.0,
            last_admission: f64::NEG_INFINITY,
            last_heard: f64::NEG_INFINITY,
            gap: 0.0,
            calls: 0,
            last_sample: f64::NEG_INFINITY,
            shed: 0,
        }
    }

    pub(super) fn admitted(&self) -> f32 {
        self.admitted
    }

    /// Returns the attempt timeout, if it is known.
    pub(super) fn timeout(&self) -> Option<f32> {
        self.learnt
    }

    /// Returns how long an attempt probably took that was not measured.
    pub(super) fn guess(&self, timed_out: bool) -> f32 {
        match timed_out {
            true => self.timeout().unwrap_or(USUAL_TIMEOUT),
            false => self.last,
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        self.admitted >= 1.0 && self.timeouts < WELL && self.throttled < WELL
    }

    /// Admits an attempt, or says when to try again.
    pub(super) fn admit(&mut self, now: f64, roll: impl Fn() -> Roll) -> Result<(), Duration> {
        let timeout = self.timeout().unwrap_or(USUAL_TIMEOUT);
        let is_probe = now - self.last_admission >= timeout.into();
        if self.admitted < 1.0 && !is_probe {
            let roll = fraction(roll());
            if roll >= self.admitted {
                self.shed = self.shed.saturating_add(1);
                return Err(duration(timeout * (0.5 + roll)));
            }
        }
        self.last_admission = now;
        Ok(())
    }

    /// Admits a retry by the same share as first attempts.
    pub(super) fn admit_retry(&self, roll: impl Fn() -> Roll) -> Result<(), Duration> {
        let timeout = self.timeout().unwrap_or(USUAL_TIMEOUT);
        if self.admitted < 1.0 {
            let roll = fraction(roll());
            if roll >= self.admitted {
                return Err(duration(timeout * (0.5 + roll)));
            }
        }
        Ok(())
    }

    /// Returns how many calls are between measured ones from now on, plus one.
    pub(super) fn sampling(&mut self, now: f64, sampling: u64, most: u64) -> u64 {
        let passed = now - self.last_sample;
        self.last_sample = now;
        if !self.is_calm() {
            0
        } else if passed < SAMPLE_EVERY {
            (sampling.max(1) * 2).min(most)
        } else if passed > 4.0 * SAMPLE_EVERY {
            (sampling / 2).max(1)
        } else {
            sampling.max(1)
        }
    }

    /// Takes a response into account, or the lack of one. `calls` is the number of calls
    /// that were not looked at one by one.
    pub(super) fn hear(&mut self, heard: Heard, now: f64, calls: u64) {
        self.note_calls(calls);
        self.note_gap(now);
        let weight = self.weight();
        let (timeout, throttled) = match heard {
            Heard::Timeout(_) => (1.0, 0.0),
            Heard::Throttled => (0.0, 1.0),
            Heard::Success(_) | Heard::Error => (0.0, 0.0),
        };
        self.timeouts += weight * (timeout - self.timeouts);
        self.throttled += weight * (throttled - self.throttled);
        match heard {
            Heard::Timeout(elapsed) => {
                self.learn(elapsed);
                if self.timeouts > MOSTLY_TIMEOUTS {
                    self.cut(now);
                }
            }
            Heard::Throttled if self.throttled > MOSTLY_THROTTLED => self.cut(now),
            Heard::Throttled | Heard::Error => {}
            Heard::Success(latency) => self.note_success(latency, now),
        }
    }

    /// Counts the calls that were not looked at as successes.
    fn note_calls(&mut self, calls: u64) {
        let unseen = calls.saturating_sub(self.calls).min(1000) as i32;
        self.calls = calls;
        if unseen > 1 && (self.timeouts > 0.0 || self.throttled > 0.0) {
            let kept = (1.0 - self.weight()).powi(unseen - 1);
            self.timeouts *= kept;
            self.throttled *= kept;
        }
    }

    fn note_gap(&mut self, now: f64) {
        if self.last_heard.is_finite() {
            self.gap += 0.1 * ((now - self.last_heard).min(60.0) as f32 - self.gap);
        }
        self.last_heard = now;
    }

    /// Returns the weight of one response: more for a client with few of them, and less for
    /// one with many, so that a burst of timeouts is not taken for most of its responses.
    fn weight(&self) -> f32 {
        if self.gap > 2.0 {
            0.35
        } else if self.gap < self.timeout().unwrap_or(USUAL_TIMEOUT) / 20.0 {
            0.05
        } else {
            0.2
        }
    }

    fn learn(&mut self, elapsed: Option<f32>) {
        if let Some(elapsed) = elapsed.filter(|elapsed| *elapsed > 0.0) {
            self.learnt = Some(match self.learnt {
                Some(learnt) => learnt + 0.2 * (elapsed - learnt),
                None => elapsed,
            });
        }
    }

    /// Admits fewer attempts, once for each flight.
    fn cut(&mut self, now: f64) {
        let timeout = self.timeout().unwrap_or(USUAL_TIMEOUT);
        if now - self.last_cut < timeout.into() {
            return;
        }
        self.last_cut = now;
        self.before_cut = self.admitted;
        self.step = 0.0;
        self.admitted = (self.admitted * CUT).max(LEAST);
        self.last_change = now;
    }

    /// Releases after any success, however slow: latency alone does not show an overload.
    /// After quick successes, it releases sooner.
    fn note_success(&mut self, latency: f32, now: f64) {
        self.last = latency;
        if self.is_calm() {
            self.usual = match self.usual {
                0.0 => latency,
                usual => usual + 0.05 * (latency - usual),
            };
        }
        if self.admitted >= 1.0 {
            return;
        }
        let (quick, wait) = match self.timeout() {
            Some(timeout) if latency <= (2.0 * self.usual).max(timeout * 0.05) => {
                let wait = (4.0 * self.usual).max(timeout / 16.0).min(timeout);
                (true, wait)
            }
            known => (false, known.unwrap_or(USUAL_TIMEOUT)),
        };
        if now - self.last_change >= wait.into() {
            self.release(quick, now);
        }
    }

    /// Admits more attempts: at first twice as many, then with growing steps.
    fn release(&mut self, quick: bool, now: f64) {
        let goal = 0.7 * self.before_cut;
        if quick {
            self.admitted *= 4.0;
        } else if self.admitted < goal {
            self.admitted = (self.admitted * 2.0).min(goal);
        } else {
            self.step = (self.step * 2.0).clamp(0.05, 0.4);
            self.admitted += self.step;
        }
        if self.admitted >= 1.0 {
            self.admitted = 1.0;
            self.before_cut = 1.0;
        }
        self.last_change = now;
    }
}

/// Returns seconds as a duration, in whole microseconds.
pub(super) fn duration(seconds: f32) -> Duration {
    Duration::from_micros((f64::from(seconds) * 1e6).round() as u64)
}

/// Returns a roll as a number.
pub(crate) fn fraction(roll: Roll) -> f32 {
    const PARTS: u64 = 1 << 24;
    roll.of_nanos(PARTS) as f32 / PARTS as f32
}
