//! Generates the schedule of faults from the seed.

use std::time::Duration;

use steadfast_cluster::fault::Schedule;

use super::kind::{FaultKind, RuleKind};

/// The share of the run before the first fault and after the last, in hundredths.
const WARM_UP: u32 = 4;
const COOL_DOWN: u32 = 8;

/// A fault of the schedule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScheduledFault {
    pub(crate) kind: FaultKind,
    /// Rules that hold at the same time.
    pub(crate) with: Option<RuleKind>,
    pub(crate) lasts: Duration,
    /// The node it affects: an index into the nodes of that moment, modulo their number.
    pub(crate) node: usize,
    /// Decides its random choices.
    pub(crate) seed: u64,
}

/// Returns the schedule of a seed for a cluster of this size, with TLS or without: every fault
/// that it allows, in random order. None begins before the one before it has ended. Faults that must outlast the
/// timeout of an operation do so, unless the run is too short for it.
pub(crate) fn schedule(
    seed: u64,
    duration: Duration,
    (nodes, tls): (usize, bool),
    timeout: Duration,
) -> Schedule<ScheduledFault> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kinds: Vec<FaultKind> = FaultKind::ALL
        .into_iter()
        .filter(|kind| nodes >= kind.properties().min_nodes && (tls || !kind.needs_tls()))
        .collect();
    random.shuffle(&mut kinds);
    // A node leaves after another has joined, so that there are never fewer than at first.
    let position = |wanted| kinds.iter().position(|kind| *kind == wanted);
    if let (Some(joins), Some(leaves)) = (
        position(FaultKind::RebalanceIn),
        position(FaultKind::RebalanceOut),
    ) && joins > leaves
    {
        kinds.swap(joins, leaves);
    }
    let short = kinds.iter().filter(|kind| kind.outlasts(timeout).is_none());
    let rules: Vec<RuleKind> = short.filter_map(|kind| kind.rule()).collect();
    let available = duration * (100 - WARM_UP - COOL_DOWN) / 100;
    let reserved: Duration = kinds.iter().filter_map(|kind| kind.outlasts(timeout)).sum();
    let is_enough = reserved <= available * 3 / 4;
    let long = |kind: FaultKind| kind.outlasts(timeout).filter(|_| is_enough);
    let weighted = kinds.iter().filter(|kind| long(**kind).is_none());
    let total: u32 = weighted.map(|kind| kind.properties().weight).sum();
    let shared = match is_enough {
        true => available - reserved,
        false => available,
    };
    let mut at = duration * WARM_UP / 100;
    let mut schedule = Schedule::default();
    for kind in kinds {
        let lasts = long(kind).unwrap_or(shared * kind.properties().weight / total);
        // Real faults overlap, too.
        let with = (kind.rule().is_none() && !kind.measures() && random.bool())
            .then(|| random.choice(rules.iter().copied()))
            .flatten();
        let fault = ScheduledFault {
            kind,
            with,
            lasts,
            node: random.usize(..64),
            seed: random.u64(..),
        };
        let in_order = schedule.push(at, fault);
        debug_assert!(in_order, "times only grow");
        at += lasts;
    }
    schedule
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_seed_replays_the_same_schedule_and_another_seed_another_one() {
        assert_eq!(
            schedule(4711, TEN, (3, true), SECOND),
            schedule(4711, TEN, (3, true), SECOND)
        );
        assert_ne!(
            schedule(4711, TEN, (3, true), SECOND),
            schedule(4712, TEN, (3, true), SECOND)
        );
    }

    #[test]
    fn every_schedule_has_every_fault_one_after_the_other_and_within_the_run() {
        for seed in 0..200 {
            let schedule = schedule(seed, TEN, (3, true), SECOND);
            let mut kinds: Vec<_> = schedule.iter().map(|(_, fault)| fault.kind).collect();
            let position = |kind| kinds.iter().position(|found| *found == kind).unwrap();
            let (joins, leaves) = (FaultKind::RebalanceIn, FaultKind::RebalanceOut);
            assert!(position(joins) < position(leaves), "{seed}");
            kinds.sort_unstable();
            assert_eq!(kinds, FaultKind::ALL);
            let mut end = Duration::ZERO;
            for (at, fault) in schedule.iter() {
                assert!(*at >= end);
                end = *at + fault.lasts;
            }
            assert!(end <= TEN * 93 / 100, "{seed}: {end:?}");
        }
    }

    #[test]
    fn a_single_node_is_neither_failed_over_nor_removed() {
        let banned = [FaultKind::FailOver, FaultKind::RebalanceOut];
        let schedule = schedule(1, TEN, (1, true), SECOND);
        assert!(
            schedule
                .iter()
                .all(|(_, fault)| !banned.contains(&fault.kind))
        );
    }

    #[test]
    fn a_certificate_is_rotated_only_with_tls() {
        let rotates = |tls| {
            let schedule = schedule(1, TEN, (3, tls), SECOND);
            let mut kinds = schedule.iter().map(|(_, fault)| fault.kind);
            kinds.any(|kind| kind == FaultKind::RotatedCertificate)
        };
        assert!(rotates(true) && !rotates(false));
    }

    #[test]
    fn a_fault_that_must_outlast_the_timeout_does_so_if_the_run_is_long_enough() {
        for (duration, timeout, long_enough) in
            [(30, 2500, true), (10, 1000, true), (5, 2500, false)]
        {
            let (duration, timeout) = (
                Duration::from_secs(duration),
                Duration::from_millis(timeout),
            );
            let schedule = schedule(4711, duration, (3, true), timeout);
            let mut long = schedule
                .iter()
                .filter(|(_, fault)| fault.kind.outlasts(timeout).is_some());
            assert_eq!(
                long.all(|(_, fault)| fault.lasts > timeout),
                long_enough,
                "{duration:?}"
            );
            let last = schedule.iter().last().unwrap();
            assert!(last.0 + last.1.lasts <= duration * 93 / 100, "{duration:?}");
        }
    }
}
