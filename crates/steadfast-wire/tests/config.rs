//! The cluster config, from the JSON that servers send.

use proptest::prelude::*;
use serde_json::{Value, json};
use steadfast_wire::config::{ClusterConfig, ConfigVersion, Service, Transport};

/// Two data nodes and one that runs queries only, in the middle of a rebalance.
fn bucket_json() -> Value {
    json!({
        "rev": 1073,
        "revEpoch": 1,
        "name": "travel",
        "uuid": "99ba4d1d6d1ee46e2a5c0bd9bce3b02b",
        "nodeLocator": "vbucket",
        "uri": "/pools/default/buckets/travel?bucket_uuid=99ba4d1d6d1ee46e2a5c0bd9bce3b02b",
        "collectionsManifestUid": "1f",
        "bucketCapabilities": ["collections", "durableWrite", "xattr"],
        "something": {"new": [1, 2, 3]},
        "nodes": [
            {"hostname": "$HOST:8091", "couchApiBase": "http://$HOST:8092/travel", "ports": {"direct": 11210}},
            {"hostname": "db2:8091", "ports": {"direct": 11210}}
        ],
        "nodesExt": [
            {
                "services": {"kv": 11210, "kvSSL": 11207, "mgmt": 8091, "projector": 9999},
                "thisNode": true,
                "alternateAddresses": {"external": {"hostname": "db1.example.com", "ports": {"kv": 31210}}}
            },
            {"hostname": "db2", "services": {"kv": 11210, "mgmt": 8091}, "serverGroup": "west"},
            {"hostname": "db3", "services": {"n1ql": 8093, "mgmt": 8091}}
        ],
        "clusterCapabilities": {"n1ql": ["enhancedPreparedStatements"]},
        "clusterCapabilitiesVer": [1, 0],
        "vBucketServerMap": {
            "hashAlgorithm": "CRC",
            "numReplicas": 1,
            "serverList": ["$HOST:11210", "db2:11210"],
            "vBucketMap": [[0, 1], [0, 1], [1, 0], [1, -1]],
            "vBucketMapForward": [[1, 0], [1, 0], [0, 1], [0, 1]]
        }
    })
}

fn parse(json: &Value) -> Result<ClusterConfig, String> {
    ClusterConfig::parse(json.to_string().as_bytes(), "db1").map_err(|error| error.to_string())
}

#[test]
fn a_bucket_config_says_who_owns_what_now_and_later() {
    let config = parse(&bucket_json()).unwrap();
    assert_eq!(
        config.version,
        ConfigVersion {
            epoch: 1,
            rev: 1073
        }
    );
    assert_eq!(config.this_node(), Some(0));
    assert_eq!(config.capabilities["n1ql"], ["enhancedPreparedStatements"]);

    let bucket = config.bucket.as_ref().unwrap();
    assert_eq!(
        (bucket.name.as_str(), bucket.manifest_uid),
        ("travel", Some(0x1f))
    );
    assert_eq!(
        bucket.capabilities,
        ["collections", "durableWrite", "xattr"]
    );
    assert_eq!(bucket.servers, ["db1:11210", "db2:11210"]);
    assert_eq!(
        (bucket.vbuckets.active(0), bucket.vbuckets.node(3, 1)),
        (Some(0), None)
    );
    assert_eq!(bucket.forward_vbuckets.as_ref().unwrap().active(0), Some(1));
}

#[test]
fn only_the_first_nodes_hold_the_data() {
    let config = parse(&bucket_json()).unwrap();
    let names: Vec<_> = config
        .bucket_nodes()
        .iter()
        .map(|node| node.hostname.as_str())
        .collect();
    assert_eq!(names, ["db1", "db2"]);
    assert_eq!(config.nodes.len(), 3);
}

#[test]
fn a_node_without_a_name_has_the_name_it_was_reached_by() {
    let json = bucket_json().to_string();
    let config = ClusterConfig::parse(json.as_bytes(), "::1").unwrap();
    assert_eq!(config.nodes[0].hostname, "::1");
    assert_eq!(config.bucket.unwrap().servers[0], "[::1]:11210");
}

#[test]
fn services_without_a_type_are_kept() {
    let config = parse(&bucket_json()).unwrap();
    assert!(
        config.nodes[0]
            .ports
            .iter()
            .any(|port| port == ("projector", 9999))
    );
    let outside = config.nodes[0].endpoint(Service::KeyValue, Transport::Plain, Some("external"));
    assert_eq!(outside, Some(("db1.example.com", 31210)));
}

#[test]
fn a_global_config_has_no_bucket_and_no_epoch_means_zero() {
    let config = parse(&json!({"rev": 5, "nodesExt": [{"services": {"kv": 1}}]})).unwrap();
    assert_eq!(config.version, ConfigVersion { epoch: 0, rev: 5 });
    assert_eq!(config.bucket, None);
    assert!(config.bucket_nodes().is_empty());
}

#[test]
fn a_negative_epoch_is_read_as_it_is() {
    let config = parse(&json!({"rev": 5, "revEpoch": -1, "nodesExt": []})).unwrap();
    assert_eq!(config.version, ConfigVersion { epoch: -1, rev: 5 });
}

#[test]
fn a_config_that_contradicts_itself_is_rejected_with_the_place() {
    let cases: [(&str, Value, &str); 12] = [
        ("/rev", json!("x"), "invalid type"),
        ("/nodesExt", json!(null), "invalid type"),
        (
            "/nodeLocator",
            json!("ketama"),
            "has the nodeLocator \"ketama\": only buckets with vbuckets are supported",
        ),
        (
            "/collectionsManifestUid",
            json!("0x1f"),
            "collectionsManifestUid is not a hexadecimal",
        ),
        (
            "/nodes",
            json!([{}, {}, {}, {}]),
            "nodes has 4 entries and nodesExt 3",
        ),
        ("/nodes", json!(null), "bucket \"travel\" has no nodes"),
        (
            "/vBucketServerMap",
            json!(null),
            "bucket \"travel\" has no vBucketServerMap",
        ),
        (
            "/vBucketServerMap/hashAlgorithm",
            json!("MD5"),
            "hashAlgorithm \"MD5\"",
        ),
        (
            "/vBucketServerMap/serverList",
            json!(["db1:1"]),
            "vBucketMap has node 1, and serverList just 1",
        ),
        (
            "/vBucketServerMap/vBucketMap",
            json!([[0], [0], [0]]),
            "vBucketMap has 3 vbuckets, which is not a power of two",
        ),
        (
            "/vBucketServerMap/vBucketMapForward",
            json!([[0]]),
            "vBucketMapForward has 1 vbuckets, and vBucketMap 4",
        ),
        ("/nodesExt/0/services/kv", json!(70000), "invalid value"),
    ];
    for (place, value, problem) in cases {
        let mut json = bucket_json();
        *json.pointer_mut(place).unwrap() = value;
        let error = parse(&json).unwrap_err();
        assert!(error.contains(problem), "{place}: {error}");
    }
}

#[test]
fn anything_but_json_is_rejected() {
    for bytes in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        &[b'['; 100_000],
    ] {
        assert!(ClusterConfig::parse(bytes, "db1").is_err());
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = ClusterConfig::parse(&bytes, "db1");
    }
}
