//! What happens when: a matter of the seed alone.

use std::time::Duration;

use serde::Serialize;

use super::act::Act;

/// The share of the run before the first act, and after the last, in hundredths.
const PRELUDE: u32 = 4;
const FINALE: u32 = 8;

/// What befalls the cluster in one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Script {
    /// The acts in order. None begins before the one before has ended.
    pub acts: Vec<Scheduled>,
}

/// An act, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scheduled {
    /// What happens.
    pub act: Act,
    /// What holds meanwhile, besides.
    pub beside: Option<Act>,
    /// When it begins, in the time of the run.
    pub from: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// Which node it strikes: one of those that there are then, counted round and round.
    pub node: usize,
    /// Decides whatever chance decides in it.
    pub seed: u64,
}

impl Script {
    /// Nothing happens.
    pub fn none() -> Self {
        Self { acts: Vec::new() }
    }

    /// The script of a seed, for a cluster of so many nodes: every act that it allows, in an
    /// order of its own.
    pub fn new(seed: u64, duration: Duration, nodes: usize) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut acts: Vec<Act> = Act::ALL
            .into_iter()
            .filter(|act| nodes >= act.least_nodes())
            .collect();
        random.shuffle(&mut acts);
        // A node leaves after another has joined, so that there are never fewer than at first.
        let position = |acts: &[Act], wanted| acts.iter().position(|act| *act == wanted);
        if let (Some(joins), Some(leaves)) = (
            position(&acts, Act::RebalanceIn),
            position(&acts, Act::RebalanceOut),
        ) && joins > leaves
        {
            acts.swap(joins, leaves);
        }
        let rules: Vec<Act> = acts.iter().copied().filter(|act| act.is_rule()).collect();
        let total: u32 = acts.iter().map(|act| act.weight()).sum();
        let available = duration * (100 - PRELUDE - FINALE) / 100;
        let mut from = duration * PRELUDE / 100;
        let mut schedule = |act: Act| {
            let lasts = available * act.weight() / total;
            // Things go wrong together, too.
            let beside = (!act.is_rule() && random.bool())
                .then(|| random.choice(rules.iter().copied()))
                .flatten();
            let scheduled = Scheduled {
                act,
                beside,
                from,
                lasts,
                node: random.usize(..64),
                seed: random.u64(..),
            };
            from += lasts;
            scheduled
        };
        Self {
            acts: acts.into_iter().map(&mut schedule).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);

    #[test]
    fn a_seed_replays_the_same_script_and_another_seed_another_one() {
        assert_eq!(Script::new(4711, TEN, 3), Script::new(4711, TEN, 3));
        assert_ne!(Script::new(4711, TEN, 3), Script::new(4712, TEN, 3));
    }

    #[test]
    fn every_script_has_every_act_one_after_the_other_and_within_the_run() {
        for seed in 0..200 {
            let script = Script::new(seed, TEN, 3);
            let mut acts: Vec<_> = script.acts.iter().map(|scheduled| scheduled.act).collect();
            let of = |act| acts.iter().position(|found| *found == act).unwrap();
            assert!(of(Act::RebalanceIn) < of(Act::RebalanceOut), "{seed}");
            acts.sort_unstable();
            let mut all = Act::ALL;
            all.sort_unstable();
            assert_eq!(acts, all);
            let mut end = Duration::ZERO;
            for scheduled in &script.acts {
                assert!(scheduled.from >= end);
                end = scheduled.from + scheduled.lasts;
            }
            assert!(end <= TEN * 93 / 100, "{seed}: {end:?}");
        }
    }

    #[test]
    fn a_single_node_is_neither_failed_over_nor_removed() {
        let script = Script::new(1, TEN, 1);
        let banned = [Act::FailOver, Act::RebalanceOut];
        assert!(script.acts.iter().all(|found| !banned.contains(&found.act)));
    }
}
