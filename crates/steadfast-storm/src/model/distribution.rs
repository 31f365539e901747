//! Distributions of times.

use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// A distribution of times, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Distribution {
    /// Always the same time.
    Constant(f64),
    /// Exponential, with this mean.
    Exponential(f64),
    /// Log-normal: a long tail.
    LogNormal {
        /// The mean.
        mean: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
    /// A mixture of two exponential distributions: most requests are fast, some are slow.
    Bimodal {
        /// The mean of the fast ones.
        fast: f64,
        /// The mean of the slow ones.
        slow: f64,
        /// The share of the slow ones.
        slow_share: f64,
    },
}

impl Distribution {
    /// Returns the mean.
    pub fn mean(self) -> f64 {
        match self {
            Self::Constant(mean) | Self::Exponential(mean) => mean,
            Self::LogNormal { mean, .. } => mean,
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => fast * (1.0 - slow_share) + slow * slow_share,
        }
    }

    /// Draws a time.
    pub(crate) fn sample(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Constant(time) => time,
            Self::Exponential(mean) => exponential(rng, mean),
            Self::LogNormal { mean, sigma } => {
                // The factor makes the mean of the distribution the given one.
                mean * (sigma * normal(rng) - sigma * sigma / 2.0).exp()
            }
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => {
                let is_slow = rng.f64() < slow_share;
                exponential(rng, if is_slow { slow } else { fast })
            }
        }
    }

    pub(crate) fn is_valid(self) -> bool {
        let time = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
        match self {
            Self::Constant(time_) | Self::Exponential(time_) => time(time_),
            Self::LogNormal { mean, sigma } => time(mean) && (0.0..=5.0).contains(&sigma),
            Self::Bimodal {
                fast,
                slow,
                slow_share,
            } => time(fast) && time(slow) && (0.0..=1.0).contains(&slow_share),
        }
    }
}

/// Draws the time between two independent events.
pub(crate) fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    // `f64()` is below 1, so the logarithm is finite.
    -mean * (1.0 - rng.f64()).ln()
}

/// Draws from the standard normal distribution (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_stated_mean() {
        let mut rng = Rng::with_seed(7);
        for distribution in [
            Distribution::Constant(2.0),
            Distribution::Exponential(2.0),
            Distribution::LogNormal {
                mean: 2.0,
                sigma: 1.0,
            },
            Distribution::Bimodal {
                fast: 1.0,
                slow: 11.0,
                slow_share: 0.1,
            },
        ] {
            let total: f64 = (0..200_000).map(|_| distribution.sample(&mut rng)).sum();
            let mean = total / 2e5;
            assert!((mean - 2.0).abs() < 0.05, "{distribution:?}: {mean}");
            assert_eq!(distribution.mean(), 2.0);
        }
    }

    #[test]
    fn times_between_events_have_the_right_variance() {
        let mut rng = Rng::with_seed(7);
        let times: Vec<f64> = (0..100_000).map(|_| exponential(&mut rng, 2.0)).collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
        assert!((variance - 4.0).abs() < 0.2, "{variance}");
    }
}
