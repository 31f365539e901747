//! The longest delay before each retry.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::world::nanos;

#[derive(Clone)]
pub(super) enum Shape {
    Constant(u64),
    Linear { first: u64, step: u64, cap: u64 },
    Exponential { base: u64, factor: u32, cap: u64 },
    Controlled,
    Custom(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

const CONTROLLED_MILLIS: [u64; 6] = [1, 10, 50, 100, 500, 1000];
const MILLI: u64 = 1_000_000;

impl Shape {
    pub(super) fn longest(&self, retries: u32) -> u64 {
        match self {
            Shape::Exponential {
                base,
                factor: 2,
                cap,
            } if retries < base.leading_zeros() => (base << retries).min(*cap),
            Shape::Constant(delay) => *delay,
            other => other.longest_of_others(retries),
        }
    }

    #[inline(never)]
    fn longest_of_others(&self, retries: u32) -> u64 {
        match self {
            Shape::Constant(delay) => *delay,
            Shape::Linear { first, step, cap } => first
                .saturating_add(step.saturating_mul(retries.into()))
                .min(*cap),
            Shape::Exponential { base, factor, cap } => {
                let grown = u64::from(*factor).saturating_pow(retries);
                base.saturating_mul(grown).min(*cap)
            }
            Shape::Controlled => {
                let last = CONTROLLED_MILLIS.len() - 1;
                CONTROLLED_MILLIS[(retries as usize).min(last)] * MILLI
            }
            Shape::Custom(delay) => nanos(delay(retries)),
        }
    }

    /// No delay is ever longer than this.
    pub(super) fn cap(&self) -> u64 {
        match self {
            Shape::Constant(delay) => *delay,
            Shape::Linear { cap, .. } | Shape::Exponential { cap, .. } => *cap,
            Shape::Controlled => CONTROLLED_MILLIS[CONTROLLED_MILLIS.len() - 1] * MILLI,
            Shape::Custom(_) => u64::MAX,
        }
    }

    /// The same shape, never longer than `new`.
    pub(super) fn capped(self, new: u64) -> Self {
        match self {
            Shape::Constant(delay) => Shape::Constant(delay.min(new)),
            Shape::Linear { first, step, .. } => Shape::Linear {
                first: first.min(new),
                step,
                cap: new,
            },
            Shape::Exponential { base, factor, .. } => Shape::Exponential {
                base: base.min(new),
                factor,
                cap: new,
            },
            Shape::Controlled => Shape::Custom(Arc::new(move |retries| {
                Duration::from_nanos(Shape::Controlled.longest(retries).min(new))
            })),
            Shape::Custom(delay) => {
                let cap = Duration::from_nanos(new);
                Shape::Custom(Arc::new(move |retries| delay(retries).min(cap)))
            }
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = Duration::from_nanos;
        match self {
            Shape::Constant(0) => f.write_str("none"),
            Shape::Constant(delay) => write!(f, "{:?}", ns(*delay)),
            Shape::Linear { first, step, cap } => {
                write!(
                    f,
                    "{:?} and {:?} more each time, up to {:?}",
                    ns(*first),
                    ns(*step),
                    ns(*cap)
                )
            }
            Shape::Exponential { base, factor, cap } => {
                write!(f, "{:?} × {factor}ⁿ up to {:?}", ns(*base), ns(*cap))
            }
            Shape::Controlled => f.write_str("1, 10, 50, 100, 500, then 1000 ms"),
            Shape::Custom(_) => f.write_str("by a function of its own"),
        }
    }
}
