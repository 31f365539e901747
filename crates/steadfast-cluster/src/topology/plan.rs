//! Spreads vbuckets over nodes.
//!
//! A good map gives every node its share of active vbuckets and replicas, and a good
//! *change* of map moves few of them. The planner keeps the placements that can stay,
//! counts how many each node lacks, and gives the rest to the nodes with the fewest.

use super::NodeId;

/// The nodes of one vbucket: the active one and its replicas, with holes where nodes are too few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VbucketNodes {
    /// The active node; none after every copy was lost.
    pub active: Option<NodeId>,
    /// The nodes of the replicas.
    pub replicas: Vec<Option<NodeId>>,
}

/// Spreads vbuckets over nodes, keeping as much of the old spread as a fair share allows.
///
/// `old` may be empty, for a new bucket. `nodes` must not be.
pub(crate) fn spread(
    old: &[VbucketNodes],
    vbuckets: u16,
    replicas: usize,
    nodes: &[NodeId],
) -> Vec<VbucketNodes> {
    let count = usize::from(vbuckets);
    let mut shares = Shares::new(count, nodes);
    let mut actives: Vec<Option<NodeId>> = (0..count)
        .map(|id| {
            old.get(id)
                .and_then(|chain| chain.active)
                .filter(|node| shares.keep(*node))
        })
        .collect();
    for active in actives.iter_mut().filter(|active| active.is_none()) {
        *active = shares.least(&[]);
    }
    let mut chains: Vec<VbucketNodes> = actives
        .into_iter()
        .map(|active| VbucketNodes {
            active,
            replicas: vec![None; replicas],
        })
        .collect();
    for place in 0..replicas.min(nodes.len() - 1) {
        let mut shares = Shares::new(count, nodes);
        for (id, chain) in chains.iter_mut().enumerate() {
            let before = old
                .get(id)
                .and_then(|chain| chain.replicas.get(place).copied().flatten());
            chain.replicas[place] = before.filter(|node| !chain.has(*node) && shares.keep(*node));
        }
        for chain in chains
            .iter_mut()
            .filter(|chain| chain.replicas[place].is_none())
        {
            let taken: Vec<NodeId> = chain
                .active
                .iter()
                .chain(chain.replicas.iter().flatten())
                .copied()
                .collect();
            chain.replicas[place] = shares.least(&taken);
        }
    }
    chains
}

impl VbucketNodes {
    fn has(&self, node: NodeId) -> bool {
        self.active == Some(node) || self.replicas.contains(&Some(node))
    }
}

/// How many vbuckets each node has, and how many it should have at most.
struct Shares<'a> {
    nodes: &'a [NodeId],
    held: Vec<usize>,
    fair: usize,
    larger_left: usize,
}

impl<'a> Shares<'a> {
    fn new(vbuckets: usize, nodes: &'a [NodeId]) -> Self {
        Self {
            nodes,
            held: vec![0; nodes.len()],
            fair: vbuckets / nodes.len(),
            // The remainder of the division goes to the first nodes, one vbucket each.
            larger_left: vbuckets % nodes.len(),
        }
    }

    /// Takes one more for a node if that leaves the spread fair.
    fn keep(&mut self, node: NodeId) -> bool {
        let Some(at) = self.nodes.iter().position(|known| *known == node) else {
            return false;
        };
        if self.held[at] == self.fair && self.larger_left > 0 {
            self.larger_left -= 1;
        } else if self.held[at] >= self.fair {
            return false;
        }
        self.held[at] += 1;
        true
    }

    /// Takes one more for the node that has least and is not excluded.
    fn least(&mut self, excluded: &[NodeId]) -> Option<NodeId> {
        let at = (0..self.nodes.len())
            .filter(|&at| !excluded.contains(&self.nodes[at]))
            .min_by_key(|&at| self.held[at])?;
        self.held[at] += 1;
        Some(self.nodes[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: u8) -> Vec<NodeId> {
        (0..count).map(NodeId::new).collect()
    }

    fn held(chains: &[VbucketNodes], node: NodeId) -> usize {
        chains
            .iter()
            .filter(|chain| chain.active == Some(node))
            .count()
    }

    #[test]
    fn every_node_gets_its_share_and_no_chain_has_a_node_twice() {
        for count in 1..=7 {
            for replicas in 0..=3 {
                let nodes = nodes(count);
                let chains = spread(&[], 1024, replicas, &nodes);
                let shares: Vec<_> = nodes.iter().map(|node| held(&chains, *node)).collect();
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
                for chain in &chains {
                    let mut all: Vec<_> = chain
                        .active
                        .iter()
                        .chain(chain.replicas.iter().flatten())
                        .collect();
                    all.sort_unstable();
                    all.dedup();
                    assert_eq!(all.len(), 1 + replicas.min(usize::from(count) - 1));
                    assert_eq!(chain.replicas.len(), replicas);
                }
            }
        }
    }

    #[test]
    fn only_the_share_of_a_node_that_joins_or_leaves_moves() {
        let moved = |before: &[VbucketNodes], after: &[VbucketNodes]| {
            let both = before.iter().zip(after);
            both.filter(|(old, new)| old.active != new.active).count()
        };
        let (three, four) = (
            spread(&[], 1024, 1, &nodes(3)),
            spread(&[], 1024, 1, &nodes(4)),
        );
        assert_eq!(spread(&three, 1024, 1, &nodes(3)), three);
        let joined = spread(&three, 1024, 1, &nodes(4));
        assert_eq!(held(&joined, NodeId::new(3)), 256);
        assert!(moved(&three, &joined) <= 257);
        let left = spread(&four, 1024, 1, &[0, 2, 3].map(NodeId::new));
        assert!(left.iter().all(|chain| !chain.has(NodeId::new(1))));
        assert_eq!(moved(&four, &left), 256);
    }
}
