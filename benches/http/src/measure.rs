//! Measures wall time and processor time of network calls.
//!
//! Most of a call over loopback is waiting for the other side, and on a machine
//! that does other things as well that varies by more than a layer costs. The
//! processor's time of the calling thread does not count the waiting: it is what
//! a layer adds to. Contenders take turns, and the median of their batches counts.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::groups::Contender;

const BATCH: Duration = Duration::from_millis(2);

/// What a call takes, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) wall: f64,
    pub(crate) processor: f64,
}

pub(crate) fn side_by_side(contenders: &[Contender<'_>], rounds: usize) -> Vec<Cost> {
    let calls: Vec<u64> = contenders.iter().map(calibrate).collect();
    let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        // Nobody always comes after the same one.
        for turn in 0..contenders.len() {
            let who = (round + turn) % contenders.len();
            samples[who].push(batch(&contenders[who], calls[who]));
        }
    }
    let of = |samples: &Vec<Cost>, of: fn(&Cost) -> f64| median(samples.iter().map(of).collect());
    samples
        .iter()
        .map(|samples| Cost {
            wall: of(samples, |cost| cost.wall),
            processor: of(samples, |cost| cost.processor),
        })
        .collect()
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

fn batch(contender: &Contender<'_>, calls: u64) -> Cost {
    let (began, before) = (Instant::now(), processor());
    (contender.calls)(calls);
    let per_call = |time: Duration| time.as_nanos() as f64 / calls as f64;
    Cost {
        processor: per_call(processor() - before),
        wall: per_call(began.elapsed()),
    }
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
