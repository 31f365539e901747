//! Measures the processor time of network calls.
//!
//! Most of a call over loopback is waiting for the other side, and on a machine
//! that does other things as well that varies by more than a layer costs. The
//! processor's time of the calling thread does not count the waiting: it is what
//! a layer adds to. Contenders take turns, and the median of their batches counts.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::groups::Contender;

const BATCH: Duration = Duration::from_millis(2);

/// Returns the nanoseconds that a call of each contender takes.
pub(crate) fn side_by_side(contenders: &[Contender<'_>], rounds: usize) -> Vec<f64> {
    let calls: Vec<u64> = contenders.iter().map(calibrate).collect();
    let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        // Nobody always comes after the same one.
        for turn in 0..contenders.len() {
            let who = (round + turn) % contenders.len();
            samples[who].push(batch(&contenders[who], calls[who]));
        }
    }
    samples.into_iter().map(median).collect()
}

fn calibrate(contender: &Contender<'_>) -> u64 {
    let mut calls = 8;
    loop {
        let began = Instant::now();
        (contender.calls)(calls);
        if began.elapsed() >= BATCH {
            return calls;
        }
        calls *= 2;
    }
}

fn batch(contender: &Contender<'_>, calls: u64) -> f64 {
    let before = processor();
    (contender.calls)(calls);
    (processor() - before).as_nanos() as f64 / calls as f64
}

/// The time that this thread was given.
fn processor() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
