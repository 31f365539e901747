//! The course of one operation through the maps (RFC 0005; D21 to D23).
//!
//! It starts on the current map. A node that does not have the vbucket sends it
//! on: to where a newer config has it, or else to where the fast-forward map of
//! the same config will have it. It goes to a new place at once, once for each
//! revision of the config, so that two nodes which point at each other cannot
//! make it spin; otherwise it waits. From the fast-forward map it does not go
//! back to the current map of the same config.

use std::sync::Arc;

use steadfast_wire::config::ConfigVersion;

use super::{Node, NodeId, Routes};

/// Every revision lets an operation go on at once, and a hostile server can have
/// as many revisions as it likes. After so many hops and early wakes an operation
/// waits its delays out.
const MOST_HOPS: u8 = 16;

/// In a box, since few operations are ever sent on and all have a course.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    moves: Option<Box<Moves>>,
    hops: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    /// The config whose fast-forward map is followed.
    forward: Option<ConfigVersion>,
    /// The config by which it last went on at once.
    hopped: Option<ConfigVersion>,
}

impl Course {
    /// The node to go to now.
    pub(crate) fn node<'r>(
        &self,
        routes: &'r Routes,
        vbucket: u16,
        copy: u8,
    ) -> Option<&'r Arc<Node>> {
        if let Some(moves) = &self.moves
            && moves.forward == Some(routes.version())
        {
            let forward = routes.forward(vbucket, copy);
            return forward.or_else(|| routes.current(vbucket, copy));
        }
        routes.current(vbucket, copy)
    }

    /// A node said that the vbucket is not its own; `routes` are the newest that
    /// there are, the answer included. True if it is to go on at once.
    pub(crate) fn refused(
        &mut self,
        refused_by: NodeId,
        routes: &Routes,
        vbucket: u16,
        copy: u8,
    ) -> bool {
        let version = routes.version();
        let moves = self.moves.get_or_insert_default();
        if moves.forward != Some(version) {
            let current = routes.current(vbucket, copy);
            if current.is_some_and(|node| node.id != refused_by) {
                moves.forward = None;
                return self.hop(version);
            }
            if routes.forward(vbucket, copy).is_some() {
                moves.forward = Some(version);
            }
        }
        let next = self.node(routes, vbucket, copy);
        next.is_some_and(|node| node.id != refused_by) && self.hop(version)
    }

    /// It was woken before its delay was over.
    pub(crate) fn woken(&mut self) {
        self.hops = self.hops.saturating_add(1);
    }

    /// Whether news may still wake it early.
    pub(crate) fn heeds_news(&self) -> bool {
        self.hops < MOST_HOPS
    }

    fn hop(&mut self, version: ConfigVersion) -> bool {
        let heeds_news = self.heeds_news();
        let moves = self.moves.get_or_insert_default();
        if moves.hopped == Some(version) || !heeds_news {
            return false;
        }
        moves.hopped = Some(version);
        self.hops += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steadfast_wire::config::ClusterConfig;

    use super::*;

    /// A config of four nodes, whose ids are their places, and of one vbucket:
    /// where it is, and where it will be.
    fn routes(rev: u64, current: i32, forward: Option<i32>) -> Routes {
        let node = |place: usize| json!({"hostname": format!("n{place}:8091")});
        let services =
            |place: usize| json!({"hostname": format!("n{place}"), "services": {"kv": 11210}});
        let mut json = json!({
            "rev": rev, "revEpoch": 1, "name": "b", "uuid": "1", "nodeLocator": "vbucket",
            "nodes": [node(0), node(1), node(2), node(3)],
            "nodesExt": [services(0), services(1), services(2), services(3)],
            "vBucketServerMap": {
                "hashAlgorithm": "CRC", "numReplicas": 0,
                "serverList": ["n0:11210", "n1:11210", "n2:11210", "n3:11210"],
                "vBucketMap": [[current]]
            }
        });
        if let Some(forward) = forward {
            json["vBucketServerMap"]["vBucketMapForward"] = json!([[forward]]);
        }
        let config = ClusterConfig::parse(json.to_string().as_bytes(), "n0").unwrap();
        let nodes = (0..4).map(|id| Some(Node::unconnected(id))).collect();
        Routes::new(Arc::new(config), nodes)
    }

    fn next(course: &Course, routes: &Routes) -> Option<NodeId> {
        course.node(routes, 0, 0).map(|node| node.id)
    }

    #[test]
    fn without_a_forward_map_it_stays_on_the_current_one_and_waits() {
        let routes = routes(1, 2, None);
        let mut course = Course::default();
        assert_eq!(next(&course, &routes), Some(2));
        for _ in 0..3 {
            assert!(!course.refused(2, &routes, 0, 0));
            assert_eq!(next(&course, &routes), Some(2));
        }
    }

    #[test]
    fn the_forward_map_comes_after_the_current_one_at_once_and_is_not_left_again() {
        let routes = routes(1, 2, Some(3));
        let mut course = Course::default();
        assert_eq!(
            next(&course, &routes),
            Some(2),
            "not before the current one"
        );
        assert!(course.refused(2, &routes, 0, 0), "at once");
        assert_eq!(next(&course, &routes), Some(3));
        for _ in 0..3 {
            assert!(!course.refused(3, &routes, 0, 0), "from here on it waits");
            assert_eq!(next(&course, &routes), Some(3));
        }
    }

    #[test]
    fn a_newer_config_is_followed_at_once_and_its_current_map_comes_first() {
        let mut course = Course::default();
        assert!(course.refused(2, &routes(1, 2, Some(3)), 0, 0));
        let newer = routes(2, 1, Some(0));
        assert_eq!(next(&course, &newer), Some(1));
        assert!(course.refused(3, &newer, 0, 0), "the answer brought it");
        assert_eq!(next(&course, &newer), Some(1));
    }

    #[test]
    fn it_goes_on_at_once_only_once_for_each_revision() {
        let mut course = Course::default();
        let newer = routes(2, 1, Some(3));
        assert!(course.refused(2, &newer, 0, 0));
        assert_eq!(next(&course, &newer), Some(1));
        // The forward map is next, but there was a hop by this revision already.
        assert!(!course.refused(1, &newer, 0, 0));
        assert_eq!(next(&course, &newer), Some(3));
        assert!(course.refused(3, &routes(3, 0, None), 0, 0), "another one");
    }

    #[test]
    fn a_server_with_ever_new_revisions_cannot_make_it_spin() {
        let mut course = Course::default();
        let hops = (0..1000).filter(|rev| {
            let (refused_by, next) = (rev % 2, 1 - rev % 2);
            course.refused(refused_by, &routes(*rev, next as i32, None), 0, 0)
        });
        assert_eq!(hops.count(), usize::from(MOST_HOPS));
    }
}
