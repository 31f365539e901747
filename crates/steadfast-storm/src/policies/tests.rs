use super::*;

#[test]
fn every_policy_is_found_by_its_name() {
    for policy in Policy::all() {
        let found = Policy::by_name(&policy.name).map(|found| found.name);
        assert_eq!(found, Some(policy.name));
        assert!(!policy.about.is_empty());
    }
    assert!(Policy::by_name("unknown").is_none());
}
