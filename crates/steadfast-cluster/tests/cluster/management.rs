//! The management service, over real sockets.

use crate::support::http::{self, Call, HttpReply};
use crate::support::{BUCKET, Client, USUAL, VBUCKETS, builder, cluster};
use serde_json::{Value, json};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{NodeId, Service, TestCluster};
use steadfast_wire::Status;
use tokio::io::AsyncReadExt;

async fn get(cluster: &TestCluster, path: &str) -> HttpReply {
    Call::new("GET", path)
        .send(cluster, Service::Management)
        .await
}

async fn form(cluster: &TestCluster, method: &str, path: &str, form: &str) -> HttpReply {
    let call = Call::new(method, path).form(form);
    call.send(cluster, Service::Management).await
}

async fn delete(cluster: &TestCluster, path: &str) -> u16 {
    form(cluster, "DELETE", path, "").await.status
}

#[tokio::test]
async fn clients_find_the_cluster_its_services_and_its_maps() {
    let cluster = cluster(2, 1).await;
    let pools = Call::new("GET", "/pools")
        .by(None)
        .send(&cluster, Service::Management)
        .await;
    assert_eq!(pools.json()["pools"][0]["name"], "default");
    assert_eq!(
        get(&cluster, "/pools/default").await.json()["nodes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let services = get(&cluster, "/pools/default/nodeServices").await.json();
    let query = cluster.addresses(Service::Query)[1]
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(
        services["nodesExt"][1]["services"]["n1ql"].to_string(),
        query
    );
    assert_eq!(services["nodesExt"][0]["thisNode"], true);
    let map = get(&cluster, "/pools/default/b/b").await.json();
    assert_eq!(map["name"], BUCKET);
    let vbuckets = map["vBucketServerMap"]["vBucketMap"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(vbuckets, usize::from(VBUCKETS));
    assert_eq!(get(&cluster, "/pools/default/b/nope").await.status, 404);
    assert_eq!(get(&cluster, "/nowhere").await.status, 404);
    // To the web console.
    assert_eq!(get(&cluster, "/").await.status, 301);
    assert_eq!(get(&cluster, "/pools").await.status, 200);
}

#[tokio::test]
async fn requests_without_credentials_get_a_401() {
    let cluster = cluster(1, 0).await;
    for user in [None, Some(("app", "wrong")), Some(("nobody", "secret"))] {
        let call = Call::new("GET", "/pools/default").by(user);
        let refused = call.send(&cluster, Service::Management).await;
        assert_eq!(refused.status, 401);
        assert!(
            refused.head.contains("www-authenticate: basic realm="),
            "{}",
            refused.head
        );
    }
}

#[tokio::test]
async fn a_streaming_map_is_pushed_when_it_changes_and_ends_with_its_bucket() {
    let cluster = cluster(1, 0).await;
    let call = Call::new("GET", "/pools/default/bs/b");
    let mut stream = call.start(&cluster, Service::Management).await;
    let mut bytes = Vec::new();
    read_until(&mut stream, &mut bytes, 1).await;
    cluster.create_scope(BUCKET, "s").unwrap();
    read_until(&mut stream, &mut bytes, 2).await;
    cluster.drop_bucket(BUCKET).await.unwrap();
    stream.read_to_end(&mut bytes).await.unwrap();
    let answer = http::parse(&bytes).unwrap();
    assert!(answer.whole);
    let maps: Vec<Value> = answer
        .body
        .split("\n\n\n\n")
        .filter(|map| !map.is_empty())
        .map(|map| serde_json::from_str(map).unwrap())
        .collect();
    assert!(maps[0]["rev"].as_i64() < maps[1]["rev"].as_i64());
    assert_eq!(maps[0]["collectionsManifestUid"], "0");
    assert_eq!(maps[1]["collectionsManifestUid"], "1");
}

async fn read_until(stream: &mut tokio::net::TcpStream, bytes: &mut Vec<u8>, maps: usize) {
    while bytes
        .windows(4)
        .filter(|window| window == b"\n\n\n\n")
        .count()
        < maps
    {
        assert_ne!(stream.read_buf(bytes).await.unwrap(), 0, "it ended early");
    }
}

#[tokio::test]
async fn buckets_are_created_shown_changed_flushed_and_dropped() {
    let cluster = cluster(1, 0).await;
    let made = "name=made&ramQuotaMB=128&replicaNumber=0&flushEnabled=1&bucketType=membase";
    assert_eq!(
        form(&cluster, "POST", "/pools/default/buckets", made)
            .await
            .status,
        202
    );
    let again = form(&cluster, "POST", "/pools/default/buckets", made).await;
    assert_eq!(again.status, 400);
    assert_eq!(
        again.json()["errors"]["name"],
        "Bucket with given name already exists"
    );
    let shown = get(&cluster, "/pools/default/buckets/made").await.json();
    assert_eq!(shown["quota"]["ram"], 128 * 1024 * 1024);
    assert_eq!(shown["replicaNumber"], 0);
    assert_eq!(shown["nodes"][0]["status"], "healthy");
    assert!(shown["controllers"]["flush"].is_string());
    let all = get(&cluster, "/pools/default/buckets").await.json();
    assert_eq!(all.as_array().unwrap().len(), 2);

    let mut client = Client::connect(&cluster, NodeId::new(0)).await;
    client.hello(USUAL).await;
    client.authenticate("app", "secret").await;
    assert_eq!(client.select("made").await, Status::Success);

    let flush = "/pools/default/buckets/made/controller/doFlush";
    assert_eq!(form(&cluster, "POST", flush, "").await.status, 200);
    let update = form(
        &cluster,
        "POST",
        "/pools/default/buckets/made",
        "flushEnabled=0&ramQuotaMB=200",
    );
    assert_eq!(update.await.status, 200);
    let refused = form(&cluster, "POST", flush, "").await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("Flush is disabled for the bucket"));
    let shown = get(&cluster, "/pools/default/buckets/made").await.json();
    assert_eq!(shown["quota"]["ram"], 200 * 1024 * 1024);

    assert_eq!(delete(&cluster, "/pools/default/buckets/made").await, 200);
    assert_eq!(delete(&cluster, "/pools/default/buckets/made").await, 404);
    assert_eq!(form(&cluster, "POST", flush, "").await.status, 404);
    assert_eq!(
        get(&cluster, "/pools/default/buckets/made").await.status,
        404
    );
}

#[tokio::test]
async fn a_flush_empties_the_bucket() {
    let cluster = cluster(1, 0).await;
    let mut client = Client::for_key(&cluster, "k").await;
    client.set("k", "1").await;
    let flush = "/pools/default/buckets/b/controller/doFlush";
    assert_eq!(form(&cluster, "POST", flush, "").await.status, 200);
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
}

#[tokio::test]
async fn requests_have_the_statuses_and_the_messages_of_a_real_server() {
    let cluster = cluster(1, 0).await;
    let rows = include_str!("management.txt").lines();
    for row in rows.filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split(" |").map(str::trim).collect();
        let [method, path, form, expected] = cells[..] else {
            panic!("{row}");
        };
        let (status, part) = expected.split_once(' ').unwrap_or((expected, ""));
        let (service, path) = match path.split_once(":/") {
            Some((name, _)) => {
                let mut services = Service::ALL.into_iter();
                let service = services.find(|service| service.to_string() == name);
                (service.unwrap(), &path[name.len() + 1..])
            }
            None => (Service::Management, path),
        };
        let call = Call::new(method, path).form(form);
        let reply = call.send(&cluster, service).await;
        assert_eq!(reply.status.to_string(), status, "{row}: {}", reply.body);
        assert!(reply.body.contains(part), "{row}: {}", reply.body);
    }
}

#[tokio::test]
async fn users_are_created_log_in_and_are_dropped() {
    let cluster = cluster(1, 0).await;
    let user = "/settings/rbac/users/local/u";
    let body = "name=A+user&password=secret1&roles=data_reader[b],data_writer[b]";
    assert_eq!(form(&cluster, "PUT", user, body).await.status, 200);
    let shown = get(&cluster, user).await.json();
    assert_eq!(
        (&shown["id"], &shown["name"], &shown["domain"]),
        (&json!("u"), &json!("A user"), &json!("local"))
    );
    let writer = &shown["roles"][1];
    assert_eq!(
        (
            &writer["bucket_name"],
            &writer["scope_name"],
            &writer["collection_name"]
        ),
        (&json!(BUCKET), &json!("*"), &json!("*"))
    );
    let changed = shown["password_change_date"].as_str().unwrap();
    assert!(
        changed.starts_with("20") && changed.ends_with('Z'),
        "{changed}"
    );
    let listed = get(&cluster, "/settings/rbac/users").await.json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let whoami = Call::new("GET", "/whoami").by(Some(("u", "secret1")));
    assert_eq!(
        whoami.send(&cluster, Service::Management).await.json()["id"],
        "u"
    );

    let log_in = async |password: &str| {
        let mut client = Client::connect(&cluster, NodeId::new(0)).await;
        client.hello(USUAL).await;
        client.authenticate("u", password).await
    };
    assert_eq!(log_in("secret1").await, Status::Success);
    // Without a password the old one stays.
    assert_eq!(
        form(&cluster, "PUT", user, "roles=data_reader[b]")
            .await
            .status,
        200
    );
    assert_eq!(log_in("secret1").await, Status::Success);
    let change = Call::new("POST", "/controller/changePassword").form("password=secret2");
    let change = change.by(Some(("u", "secret1")));
    assert_eq!(change.send(&cluster, Service::Management).await.status, 200);
    assert_eq!(log_in("secret1").await, Status::AuthError);
    assert_eq!(log_in("secret2").await, Status::Success);

    assert_eq!(delete(&cluster, user).await, 200);
    assert_eq!(delete(&cluster, user).await, 404);
    let gone = get(&cluster, user).await;
    assert_eq!((gone.status, gone.json()), (404, json!("Unknown user.")));
    let roles = get(&cluster, "/settings/rbac/roles").await.json();
    assert_eq!(roles[0]["name"], "Full Admin");
    let roles = roles.as_array().unwrap();
    let reader = roles.iter().find(|role| role["role"] == "data_reader");
    assert_eq!(reader.unwrap()["collection_name"], "*");
}

#[tokio::test]
async fn only_an_administrator_can_change_the_cluster() {
    let cluster = builder(1, 0)
        .user_with_rights("one", "p", Rights::buckets([BUCKET]))
        .user_with_rights("none", "p", Rights::buckets(["other"]))
        .start()
        .await
        .unwrap();
    let status = async |user, method, path| {
        let call = Call::new(method, path).form("name=x").by(Some((user, "p")));
        call.send(&cluster, Service::Management).await.status
    };
    assert_eq!(status("one", "GET", "/pools/default/b/b").await, 200);
    assert_eq!(status("none", "GET", "/pools/default/b/b").await, 403);
    assert_eq!(status("none", "GET", "/pools/default/bs/b").await, 403);
    for (method, path) in [
        ("POST", "/pools/default/buckets"),
        ("DELETE", "/pools/default/buckets/b"),
        ("POST", "/pools/default/buckets/b/scopes"),
        ("POST", "/pools/default/buckets/b/controller/doFlush"),
        ("PUT", "/settings/rbac/users/local/x"),
    ] {
        assert_eq!(status("one", method, path).await, 403, "{method} {path}");
    }
}

#[tokio::test]
async fn the_nodes_have_a_configured_host_name() {
    let cluster = cluster(2, 1).await;
    let nodes = get(&cluster, "/pools/nodes").await.json();
    let addresses = cluster.addresses(Service::Management);
    assert_eq!(nodes["nodes"][1]["configuredHostname"], addresses[1]);
}

#[tokio::test]
async fn the_administrator_is_not_a_local_user() {
    let cluster = cluster(1, 0).await;
    let path = &format!("/settings/rbac/users/local/{}", TestCluster::USER);
    let list = get(&cluster, "/settings/rbac/users").await.json();
    assert_eq!(list, json!([]));
    assert_eq!(get(&cluster, path).await.status, 404);
    assert_eq!(delete(&cluster, path).await, 404);
    let put = form(&cluster, "PUT", path, "roles=ro_admin&password=secret1").await;
    assert_eq!(put.status, 400);
    let me = get(&cluster, "/whoami").await.json();
    assert_eq!(
        (&me["id"], &me["domain"]),
        (&json!(TestCluster::USER), &json!("admin"))
    );
    assert_eq!(get(&cluster, "/settings/rbac/users").await.status, 200);
}

#[tokio::test]
async fn settings_of_buckets_are_stored_shown_changed_and_checked() {
    let cluster = cluster(1, 0).await;
    let buckets = "/pools/default/buckets";
    let created = form(
        &cluster,
        "POST",
        buckets,
        "name=m&ramQuotaMB=1024&storageBackend=magma&replicaIndex=1&durabilityMinLevel=majority\
         &historyRetentionBytes=2147483648&historyRetentionCollectionDefault=false&maxTTL=5",
    )
    .await;
    assert_eq!(created.status, 202, "{}", created.body);
    let shown = get(&cluster, "/pools/default/buckets/m").await.json();
    for (name, value) in [
        ("storageBackend", json!("magma")),
        ("replicaIndex", json!(true)),
        ("durabilityMinLevel", json!("majority")),
        ("historyRetentionBytes", json!(2_147_483_648_u64)),
        ("historyRetentionCollectionDefault", json!(false)),
        ("historyRetentionSeconds", json!(0)),
        ("evictionPolicy", json!("fullEviction")),
        ("maxTTL", json!(5)),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    let path = "/pools/default/buckets/m";
    let changed = form(&cluster, "POST", path, "compressionMode=active&maxTTL=9").await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let shown = get(&cluster, path).await.json();
    assert_eq!(
        (&shown["compressionMode"], &shown["maxTTL"]),
        (&json!("active"), &json!(9))
    );
}

#[tokio::test]
async fn a_bucket_demands_durability_and_limits_the_life_of_documents() {
    let cluster = cluster(1, 1).await;
    let path = "/pools/default/buckets/b";
    let mut client = Client::for_key(&cluster, "k").await;
    form(&cluster, "POST", path, "maxTTL=60").await;
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
    assert_ne!(
        cluster.document(BUCKET, ".", b"k").unwrap().unwrap().expiry,
        0
    );
    form(&cluster, "POST", path, "durabilityMinLevel=majority").await;
    // There is one node, so a majority of two copies cannot be.
    let refused = client.set("k", "2").await;
    assert_eq!(refused.status(), Status::DurabilityImpossible);
    form(&cluster, "POST", path, "durabilityMinLevel=none").await;
    assert_eq!(client.set("k", "2").await.status(), Status::Success);
}

#[tokio::test]
async fn settings_of_collections_are_changed_and_shown() {
    let cluster = cluster(1, 0).await;
    let body = "name=m&ramQuotaMB=1024&storageBackend=magma";
    form(&cluster, "POST", "/pools/default/buckets", body).await;
    let scopes = "/pools/default/buckets/m/scopes";
    let collections = format!("{scopes}/_default/collections");
    form(
        &cluster,
        "POST",
        &collections,
        "name=c&maxTTL=-1&history=true",
    )
    .await;
    let shown = || async {
        let manifest = get(&cluster, scopes).await.json();
        let found = manifest["scopes"][0]["collections"]
            .as_array()
            .unwrap()
            .clone();
        found
            .into_iter()
            .find(|found| found["name"] == "c")
            .unwrap()
    };
    let first = shown().await;
    assert_eq!(
        (&first["maxTTL"], &first["history"]),
        (&json!(-1), &json!(true))
    );
    let one = format!("{collections}/c");
    let changed = form(&cluster, "PATCH", &one, "maxTTL=7").await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    let second = shown().await;
    assert_eq!(
        (&second["maxTTL"], &second["history"]),
        (&json!(7), &json!(true))
    );
    assert_eq!(second["uid"], first["uid"]);
    let path = "/pools/default/buckets/b/scopes";
    let usual = get(&cluster, path).await.json()["scopes"][0]["collections"][0].clone();
    assert_eq!(
        (&usual["maxTTL"], &usual["history"]),
        (&json!(0), &json!(false))
    );
}

#[tokio::test]
async fn maps_name_a_port_that_answers_for_eventing() {
    let cluster = cluster(1, 0).await;
    let map = get(&cluster, "/pools/default/nodeServices").await.json();
    let services = &map["nodesExt"][0]["services"];
    assert_eq!(services["eventingAdminPort"], services["mgmt"]);
    assert_eq!(get(&cluster, "/api/v1/config").await.status, 200);
}
