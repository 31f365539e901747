//! The contenders. Each file is one contender's shortest honest way to
//! make the same call: at most three attempts, or as many as a budget allows,
//! and no delay between them.

#[cfg(feature = "peers")]
mod backon;
mod steadfast;
#[cfg(feature = "peers")]
mod tower;

use std::hint::black_box;

use steadfast_benches::{SLACK, Unmeasured};

use crate::operation::{Peer, Unavailable, ask, drive, repeat};

/// How many attempts a contender makes that counts them.
const ATTEMPTS: u32 = 3;

/// One look at the clock. A deadline needs one.
pub(crate) const CLOCK: &str = "tokio's clock";

/// Makes calls, with state that all its calls share.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// Makes calls, each of which fails this number of times before it succeeds.
    pub(crate) calls: Box<dyn Fn(u32, u64) + Sync>,
    /// The limits of ours: of a first try that succeeds, and of one that fails.
    pub(crate) limits: Option<[Limit; 2]>,
}

/// The most that a call may take, on x86-64 with the compiler of the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    allocations: f64,
    instructions: f64,
    /// Looks at the clock that it may take on top.
    clock_reads: f64,
}

/// All of them.
pub(crate) fn all() -> Vec<Contender> {
    let mut all = vec![hand_written_loop(), clock()];
    all.extend(steadfast::all());
    #[cfg(feature = "peers")]
    all.extend([backon::contender(), tower::contender()]);
    all
}

impl Contender {
    fn new(name: &'static str, calls: impl Fn(u32, u64) + Sync + 'static) -> Self {
        Self {
            name,
            calls: Box::new(calls),
            limits: None,
        }
    }
}

impl Limit {
    /// Says what exceeds the limit.
    pub(crate) fn judge(
        &self,
        allocations: f64,
        instructions: &Result<f64, Unmeasured>,
        clock: &Result<f64, Unmeasured>,
    ) -> Result<&'static str, &'static str> {
        let (Ok(instructions), Ok(clock)) = (instructions, clock) else {
            return Err("NOT MEASURED");
        };
        let most = (self.instructions + self.clock_reads * clock.round()) * SLACK;
        if allocations > self.allocations {
            Err("TOO MANY ALLOCATIONS")
        } else if instructions.round() > most {
            Err("TOO MANY INSTRUCTIONS")
        } else {
            Ok("within its limit")
        }
    }
}

fn clock() -> Contender {
    Contender::new(CLOCK, |_failures, calls| {
        for _ in 0..calls {
            black_box(tokio::time::Instant::now());
        }
    })
}

/// No budget, no law, no history, no deadline: below it no contender can be.
fn hand_written_loop() -> Contender {
    Contender::new("a hand-written loop", |failures, calls| {
        let peer = Peer::default();
        repeat(&peer, failures, calls, || {
            drive(ask_up_to_three_times(&peer))
        });
    })
}

async fn ask_up_to_three_times(peer: &Peer) -> Result<u64, Unavailable> {
    let mut attempt = 1;
    loop {
        match ask(peer).await {
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_too_much_and_what_was_not_measured_is_not_kept() {
        let limit = Limit {
            allocations: 1.0,
            instructions: 100.0,
            clock_reads: 1.0,
        };
        let is_kept = |allocations, instructions| {
            limit
                .judge(allocations, &Ok(instructions), &Ok(30.0))
                .is_ok()
        };
        assert!(is_kept(1.0, 133.0));
        assert!(!is_kept(1.0, 134.0));
        assert!(!is_kept(1.001, 100.0));
        let unmeasured = limit.judge(0.0, &Err(Unmeasured::NoValgrind), &Ok(30.0));
        assert_eq!(unmeasured, Err("NOT MEASURED"));
    }
}
