//! The two runtimes that users have, and what a load takes on them.

use std::io;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};

use crate::contenders::Worker;
use crate::load::Load;

/// Which runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// tokio's `current_thread`.
    OneThread,
    /// tokio's `multi_thread` with two workers.
    TwoThreads,
}

impl Kind {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::OneThread, Self::TwoThreads];

    /// The name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneThread => "one",
            Self::TwoThreads => "two",
        }
    }

    /// The name in titles.
    pub fn title(self) -> &'static str {
        match self {
            Self::OneThread => "current_thread",
            Self::TwoThreads => "multi_thread, two workers",
        }
    }

    /// The runtime of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Builds it. Threads that it starts run where the current one may.
    pub fn build(self) -> io::Result<Runtime> {
        let mut builder = match self {
            Self::OneThread => Builder::new_current_thread(),
            Self::TwoThreads => Builder::new_multi_thread(),
        };
        if self == Self::TwoThreads {
            builder.worker_threads(2);
        }
        builder.enable_all().build()
    }
}

/// Nanoseconds that an operation took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// By the clock on the wall.
    pub wall: f64,
    /// On this process's processors, the kernel's share included.
    pub cpu: f64,
}

/// Does a load and times it.
pub fn timed(runtime: &Runtime, worker: &Worker, load: Load) -> Took {
    let (cpu, wall) = (processor_time(), Instant::now());
    runtime.block_on(worker(load));
    let (wall, cpu) = (wall.elapsed(), processor_time() - cpu);
    let each = |total: Duration| total.as_nanos() as f64 / load.count as f64;
    Took {
        wall: each(wall),
        cpu: each(cpu),
    }
}

/// The processor time of this process up to now.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
