use serde_json::json;

use super::*;

/// A config of four nodes, whose ids are their places, and of one vbucket:
/// where it is, and where it will be.
fn routes(rev: u64, current: i32, forward: Option<i32>) -> Routes {
    routes_of_copies(rev, &[current], forward.as_ref().map(std::slice::from_ref))
}

/// The same, with the places of all copies of the vbucket.
fn routes_of_copies(rev: u64, current: &[i32], forward: Option<&[i32]>) -> Routes {
    let node = |place: usize| json!({"hostname": format!("n{place}:8091")});
    let services =
        |place: usize| json!({"hostname": format!("n{place}"), "services": {"kv": 11210}});
    let mut json = json!({
        "rev": rev, "revEpoch": 1, "name": "b", "uuid": "1", "nodeLocator": "vbucket",
        "nodes": [node(0), node(1), node(2), node(3)],
        "nodesExt": [services(0), services(1), services(2), services(3)],
        "vBucketServerMap": {
            "hashAlgorithm": "CRC", "numReplicas": current.len() - 1,
            "serverList": ["n0:11210", "n1:11210", "n2:11210", "n3:11210"],
            "vBucketMap": [current]
        }
    });
    if let Some(forward) = forward {
        json["vBucketServerMap"]["vBucketMapForward"] = json!([forward]);
    }
    let config = ClusterConfig::parse(json.to_string().as_bytes(), "n0").unwrap();
    let nodes = (0..4).map(|id| Some(Node::unconnected(id))).collect();
    Routes::new(Arc::new(config), nodes)
}

fn next(route: &VbucketRoute, routes: &Routes) -> Option<NodeId> {
    route.node(routes, 0, 0).map(|node| node.id)
}

#[test]
fn without_a_forward_map_it_stays_on_the_current_one_and_waits() {
    let routes = routes(1, 2, None);
    let mut route = VbucketRoute::default();
    assert_eq!(next(&route, &routes), Some(2));
    for _ in 0..3 {
        assert!(!route.reroute(2, &routes, 0, 0));
        assert_eq!(next(&route, &routes), Some(2));
    }
}

#[test]
fn the_forward_map_comes_after_the_current_one_at_once_and_is_not_left_again() {
    let routes = routes(1, 2, Some(3));
    let mut route = VbucketRoute::default();
    assert_eq!(next(&route, &routes), Some(2), "not before the current one");
    assert!(route.reroute(2, &routes, 0, 0), "at once");
    assert_eq!(next(&route, &routes), Some(3));
    for _ in 0..3 {
        assert!(!route.reroute(3, &routes, 0, 0), "from here on it waits");
        assert_eq!(next(&route, &routes), Some(3));
    }
}

#[test]
fn a_newer_config_is_followed_at_once_and_its_current_map_comes_first() {
    let mut route = VbucketRoute::default();
    assert!(route.reroute(2, &routes(1, 2, Some(3)), 0, 0));
    let newer = routes(2, 1, Some(0));
    assert_eq!(next(&route, &newer), Some(1));
    assert!(route.reroute(3, &newer, 0, 0), "the answer brought it");
    assert_eq!(next(&route, &newer), Some(1));
}

#[test]
fn an_operation_moves_at_once_only_once_for_each_revision() {
    let mut route = VbucketRoute::default();
    let newer = routes(2, 1, Some(3));
    assert!(route.reroute(2, &newer, 0, 0));
    assert_eq!(next(&route, &newer), Some(1));
    // The forward map is next, but there was a hop by this revision already.
    assert!(!route.reroute(1, &newer, 0, 0));
    assert_eq!(next(&route, &newer), Some(3));
    assert!(route.reroute(3, &routes(3, 0, None), 0, 0), "another one");
}

#[test]
fn a_newer_config_with_the_same_entry_changes_nothing() {
    let mut route = VbucketRoute::default();
    assert!(route.reroute(2, &routes(1, 2, Some(3)), 0, 0));
    for rev in 2..5 {
        let same = routes(rev, 2, Some(3));
        assert_eq!(next(&route, &same), Some(3), "revision {rev}");
        assert!(!route.reroute(3, &same, 0, 0), "revision {rev}: it waits");
        assert_eq!(next(&route, &same), Some(3), "revision {rev}");
    }
}

#[test]
fn an_entry_that_changed_in_either_map_leads_back_to_the_current_map() {
    for (current, forward, then) in [
        (1, Some(3), 1),
        (2, Some(0), 2),
        (2, None, 2),
        (3, None, 3),
        (-1, Some(0), 0),
    ] {
        let mut route = VbucketRoute::default();
        assert!(route.reroute(2, &routes(1, 2, Some(3)), 0, 0));
        let changed = routes(2, current, forward);
        assert_eq!(
            next(&route, &changed),
            Some(then),
            "{current} to {forward:?}"
        );
    }
}

#[test]
fn a_request_at_the_forward_node_is_woken_when_the_node_gets_the_vbucket() {
    let mut route = VbucketRoute::default();
    assert!(route.reroute(2, &routes(1, 2, Some(3)), 0, 0));
    assert!(!route.is_changed(Some(3), &routes(2, 2, Some(3)), 0, 0));
    let moved = routes(3, 3, None);
    assert!(route.is_changed(Some(3), &moved, 0, 0));
    route.update(&moved, 0, 0);
    assert!(!route.is_changed(Some(3), &moved, 0, 0), "just once");
    // The rebalance went back and began again: the current map comes first.
    assert_eq!(next(&route, &routes(4, 2, Some(3))), Some(2));
}

#[test]
fn a_vbucket_without_a_node_is_asked_for_at_its_next_one() {
    let without = routes(1, -1, Some(3));
    let mut route = VbucketRoute::default();
    assert_eq!(next(&route, &without), Some(3));
    assert!(!route.reroute(3, &without, 0, 0), "there is no other");
    assert_eq!(next(&route, &without), Some(3));
    assert_eq!(next(&route, &routes(2, -1, None)), None);
    assert!(without.forward(0, 0).is_some());
}

#[test]
fn ever_newer_revisions_do_not_cause_a_tight_loop() {
    let mut route = VbucketRoute::default();
    let hops = (0..1000).filter(|rev| {
        let (refused_by, next) = (rev % 2, 1 - rev % 2);
        route.reroute(refused_by, &routes(*rev, next as i32, None), 0, 0)
    });
    assert_eq!(hops.count(), usize::from(MAX_HOPS));
}

#[test]
fn a_copy_that_no_node_has_is_sought_in_the_forward_map_only_if_it_is_the_active_one() {
    let route = VbucketRoute::default();
    let at = |routes: &Routes, copy| route.node(routes, 0, copy).map(|node| node.id);
    let routes = routes_of_copies(1, &[-1, -1], Some(&[2, 3]));
    assert_eq!((at(&routes, 0), at(&routes, 1)), (Some(2), None));
    let routes = routes_of_copies(2, &[0, 1], Some(&[2, 3]));
    assert_eq!((at(&routes, 0), at(&routes, 1)), (Some(0), Some(1)));
}

#[test]
fn early_wakes_count_as_hops_and_both_have_one_limit() {
    let mut route = VbucketRoute::default();
    for rev in 0..u64::from(MAX_HOPS / 2) {
        assert!(route.may_wake_early());
        route.count_early_wake();
        assert!(route.reroute(2, &routes(rev, 1, None), 0, 0), "{rev}");
    }
    assert!(!route.may_wake_early());
    assert!(!route.reroute(2, &routes(99, 1, None), 0, 0), "it waits");
}
