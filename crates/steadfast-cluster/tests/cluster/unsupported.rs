//! Features of real servers that the cluster lacks: the message says so, and never blames the user.

use crate::support::cluster;
use crate::support::http::Call;
use steadfast_cluster::Service;

const MESSAGE: &str = "not supported by this cluster";

#[tokio::test]
async fn requests_for_features_that_the_cluster_lacks_are_not_supported() {
    let cluster = cluster(1, 0).await;
    for (method, path, service) in [
        ("GET", "/settings/rbac/groups", Service::Management),
        ("PUT", "/settings/rbac/groups/g", Service::Management),
        (
            "PUT",
            "/settings/rbac/users/external/u",
            Service::Management,
        ),
        ("GET", "/_p/event/api/v1/functions", Service::Management),
        ("GET", "/api/v1/functions", Service::Management),
        ("GET", "/settings/autoFailover", Service::Management),
        ("POST", "/controller/rebalance", Service::Management),
        ("GET", "/pools/default/tasks", Service::Management),
        ("POST", "/analytics/link/s/l", Service::Analytics),
        (
            "GET",
            "/analytics/node/agg/stats/remaining",
            Service::Analytics,
        ),
        ("GET", "/api/managerOptions", Service::Search),
        ("GET", "/admin/settings", Service::Query),
    ] {
        let reply = Call::new(method, path).send(&cluster, service).await;
        assert_eq!(reply.status, 501, "{path}");
        let message = reply.json()["error"].to_string();
        assert!(message.contains(MESSAGE), "{message}");
    }
    let of_group = "password=secret&roles=admin&groups=g";
    let call = Call::new("PUT", "/settings/rbac/users/local/u").form(of_group);
    let reply = call.send(&cluster, Service::Management).await;
    assert_eq!(reply.status, 501);
    assert!(reply.body.contains(MESSAGE), "{}", reply.body);
}

#[tokio::test]
async fn maps_name_a_port_that_answers_for_eventing() {
    let cluster = cluster(1, 0).await;
    let call = Call::new("GET", "/pools/default/nodeServices");
    let map = call.send(&cluster, Service::Management).await.json();
    let services = &map["nodesExt"][0]["services"];
    assert_eq!(services["eventingAdminPort"], services["mgmt"]);
    let ping = Call::new("GET", "/api/v1/config");
    assert_eq!(ping.send(&cluster, Service::Management).await.status, 200);
}

#[tokio::test]
async fn kinds_of_buckets_that_the_cluster_lacks_are_not_supported() {
    let cluster = cluster(1, 0).await;
    for (form, parameter) in [
        ("bucketType=memcached", "bucketType"),
        ("conflictResolutionType=custom", "conflictResolutionType"),
    ] {
        let body = format!("name=n&ramQuotaMB=100&{form}");
        let call = Call::new("POST", "/pools/default/buckets").form(&body);
        let reply = call.send(&cluster, Service::Management).await;
        assert_eq!(reply.status, 400);
        let message = reply.json()["errors"][parameter].to_string();
        assert!(message.contains(MESSAGE), "{message}");
    }
}
