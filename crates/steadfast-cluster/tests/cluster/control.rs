//! The control endpoint, as another process would use it.

use crate::support::{BUCKET, Client, VBUCKETS};
use serde_json::{Value, json};
use steadfast_cluster::users::Rights;
use steadfast_cluster::{BucketSettings, TestCluster};
use steadfast_wire::{Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn controlled() -> TestCluster {
    TestCluster::builder()
        .nodes(2)
        .bucket(BucketSettings::new(BUCKET).vbuckets(VBUCKETS))
        .tls(true)
        .control(0)
        .start()
        .await
        .unwrap()
}

async fn call(cluster: &TestCluster, method: &str, path: &str, body: &str) -> (u16, Value) {
    let headers = format!(
        "host: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n",
        cluster.control_token()
    );
    let address = cluster.control_address().unwrap();
    let (status, body) = http(&address.to_string(), method, path, &headers, body).await;
    (
        status,
        serde_json::from_str(&body).unwrap_or(Value::String(body)),
    )
}

/// The plainest HTTP there is, so that nothing of ours is on both ends.
async fn http(address: &str, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[tokio::test]
async fn errors_name_the_field_and_help_lists_every_effect() {
    let cluster = controlled().await;
    for (path, body, text) in [
        ("/clock", r#"{"advance_ms":-5}"#, "the field \"advance_ms\""),
        (
            "/topology/rebalance",
            r#"{"pause_ms":"long"}"#,
            "the field \"pause_ms\"",
        ),
        (
            "/faults",
            r#"{"effect":"hold","opcode":"INSRT"}"#,
            "did you mean INSERT?",
        ),
    ] {
        let (status, refused) = call(&cluster, "POST", path, body).await;
        assert_eq!(status, 400, "{path}");
        let error = refused["error"].as_str().unwrap();
        assert!(error.contains(text), "{error}");
    }
    let (_, help) = call(&cluster, "GET", "/", "").await;
    for name in ["key_prefix", "delay_ms", "cut-after-applying", "mute"] {
        assert!(help.as_str().unwrap().contains(name), "{name}");
    }
}

#[tokio::test]
async fn faults_are_added_seen_and_removed() {
    let cluster = controlled().await;
    let spec =
        json!({"opcode": "SET", "key": "k", "times": 1, "effect": "answer", "status": "EBUSY"});
    let (status, added) = call(&cluster, "POST", "/faults", &spec.to_string()).await;
    assert_eq!((status, added["id"].as_u64()), (201, Some(0)));
    let mut client = Client::for_key(&cluster, "k").await;
    assert_eq!(client.set("k", "1").await.status(), Status::Busy);
    assert_eq!(client.set("k", "1").await.status(), Status::Success);
    let (_, listed) = call(&cluster, "GET", "/faults", "").await;
    assert_eq!(listed[0]["fired"], 1);
    assert_eq!(call(&cluster, "DELETE", "/faults/0", "").await.0, 200);
    assert_eq!(call(&cluster, "DELETE", "/faults/0", "").await.0, 404);
    let (_, journal) = call(&cluster, "GET", "/journal?since=0&limit=10", "").await;
    assert_eq!(journal["entries"][0]["key"], "k");
    assert_eq!(journal["applied"], 1);
    assert_eq!(journal["next"], 1);
}

#[tokio::test]
async fn an_invalid_request_gets_a_400_with_a_sentence() {
    let cluster = controlled().await;
    let requests = r#"
        POST /faults {
        POST /faults {"effect":"explode"}
        POST /faults {"effect":"hold","surprise":1}
        DELETE /faults/x
        POST /topology/crash {}
        POST /topology/crash {"node":9}
        POST /topology/fail-over {"node":99}
        POST /topology/recover {"node":0}
        POST /topology/rebalance-in {"vbuckets_per_step":0}
        POST /topology/rebalance-in {"pause_ms":60001}
        POST /faults {"effect":"answer","status":"ETMPFAIL","service":"query"}
        POST /faults {"effect":"hold","opcode":"SET","service":"views"}
        POST /faults {"effect":"hold","bucket":"b","service":"search"}
        POST /buckets {"name":"b"}
        POST /buckets {"name":"x","replicas":9}
        POST /buckets/none/scopes {"name":"s"}
        POST /buckets/b/scopes {"name":"_bad"}
        POST /holds {"what":"breath","node":0}
        POST /clock {"advance_ms":-1}
        GET /journal?since=x
        PUT /error-map/zz {}
        PUT /error-map/fff0 {}
        POST /users {"name":"u"}
        POST /users {"name":"","password":"p"}
        POST /users {"name":"a:b","password":"p"}
        POST /users {"name":"u","password":"p","roles":"king"}
        POST /users {"name":"u","password":"p","roles":"admin","read_only":true}
    "#;
    for request in requests
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let mut parts = request.splitn(3, ' ');
        let [method, path, body] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let (status, answer) = call(&cluster, method, path, body).await;
        // A node or a bucket that does not exist is not found.
        let wanted = match body.starts_with(r#"{"node":9"#) || path.contains("/none/") {
            true => 404,
            false => 400,
        };
        assert_eq!(status, wanted, "{method} {path} {body}");
        assert!(
            answer["error"].as_str().is_some_and(|text| text.len() > 8),
            "{method} {path}: {answer}"
        );
    }
    assert_eq!(cluster.nodes().len(), 2, "nothing was begun");
    assert_eq!(call(&cluster, "GET", "/nothing", "").await.0, 404);
    assert_eq!(
        call(&cluster, "POST", "/topology/explode", "{}").await.0,
        404
    );
}

#[tokio::test]
async fn contents_and_topology_change() {
    let cluster = controlled().await;
    let status =
        async |method: &str, path: &str, body: &str| call(&cluster, method, path, body).await.0;
    let bucket = r#"{"name":"new","vbuckets":16}"#;
    assert_eq!(status("POST", "/buckets", bucket).await, 201);
    let scopes = "/buckets/new/scopes";
    assert_eq!(status("POST", scopes, r#"{"name":"s"}"#).await, 200);
    let path = "/buckets/new/scopes/s/collections";
    let (_, answer) = call(&cluster, "POST", path, r#"{"name":"c","max_ttl":5}"#).await;
    assert_eq!(answer["manifest_uid"], "2");
    let collection = format!("{path}/c");
    for path in [&collection, "/buckets/new/scopes/s", "/buckets/new"] {
        assert_eq!(status("DELETE", path, "").await, 200, "{path}");
    }

    let user = r#"{"name":"u","password":"p","buckets":["b"],"read_only":true}"#;
    assert_eq!(call(&cluster, "POST", "/users", user).await.0, 201);
    assert!(cluster.users().rights("u").unwrap().read_only);
    assert_eq!(call(&cluster, "DELETE", "/users/u", "").await.0, 200);
    let user = r#"{"name":"u","password":"p","roles":"data_reader[b]"}"#;
    assert_eq!(call(&cluster, "POST", "/users", user).await.0, 201);
    let rights = Rights::buckets(["b"]).read_only();
    assert_eq!(cluster.users().rights("u"), Some(rights));

    let pace = r#"{"vbuckets_per_step":64,"pause_ms":0}"#;
    let (code, joined) = call(&cluster, "POST", "/topology/rebalance-in", pace).await;
    assert_eq!((code, joined["node"].as_u64()), (200, Some(2)));
    let (_, shown) = call(&cluster, "GET", "/status", "").await;
    assert_eq!(shown["nodes"].as_array().unwrap().len(), 3);
    let (third, out) = (
        r#"{"node":2}"#,
        r#"{"node":0,"vbuckets_per_step":64,"pause_ms":0}"#,
    );
    for (action, body) in [
        ("crash", third),
        ("restart", third),
        ("fail-over", third),
        ("recover", third),
        ("rebalance", pace),
        ("rebalance-out", out),
    ] {
        let path = format!("/topology/{action}");
        assert_eq!(status("POST", &path, body).await, 200, "{path}");
    }
    assert_eq!(cluster.nodes().len(), 2);
}

#[tokio::test]
async fn a_rebalance_that_is_cancelled_leaves_every_vbucket_where_the_map_says() {
    let cluster = controlled().await;
    let keys: Vec<String> = (0..64).map(|number| format!("k{number}")).collect();
    for key in &keys {
        let mut client = Client::for_key(&cluster, key).await;
        assert_eq!(client.set(key, "1").await.status(), Status::Success);
    }
    assert_eq!(
        call(&cluster, "GET", "/topology/rebalance", "").await,
        (200, Value::Null)
    );
    let none = call(&cluster, "POST", "/topology/cancel", "{}").await;
    assert_eq!(none.0, 409, "{none:?}");

    let slowly = r#"{"wait":false,"vbuckets_per_step":5,"pause_ms":60000}"#;
    let (status, begun) = call(&cluster, "POST", "/topology/rebalance-in", slowly).await;
    assert_eq!((status, begun["node"].as_u64()), (200, Some(2)));
    // A step is made at once, by its own task.
    let running = loop {
        let (_, running) = call(&cluster, "GET", "/topology/rebalance", "").await;
        if running["moved"] != 0 {
            break running;
        }
    };
    assert_eq!(running["id"], begun["rebalance"]);
    assert_eq!(
        (&running["what"], &running["node"], &running["state"]),
        (&json!("rebalance-in"), &json!(2), &json!("running"))
    );
    assert_eq!(running["moved"], 5);
    let other = call(&cluster, "POST", "/topology/rebalance", "{}").await;
    assert_eq!(other.0, 409, "{other:?}");

    let (status, ended) = call(&cluster, "POST", "/topology/cancel", "{}").await;
    assert_eq!((status, &ended["state"]), (200, &json!("cancelled")));
    assert_eq!(ended["moved"], 5);
    let (_, shown) = call(&cluster, "GET", "/status", "").await;
    assert_eq!(shown["rebalance"], ended);
    let found = async || {
        for key in &keys {
            let mut client = Client::for_key(&cluster, key).await;
            assert_eq!(client.get(key).await.status(), Status::Success, "{key}");
        }
    };
    found().await;
    let mut client = Client::for_key(&cluster, "k0").await;
    let config = steadfast_wire::FrameBuilder::request(Opcode::GetClusterConfig);
    let config = client.call(config).await;
    let config = String::from_utf8_lossy(config.value()).into_owned();
    assert!(config.contains("vBucketMap"), "{config}");
    assert!(!config.contains("vBucketMapForward"), "{config}");

    let quickly = r#"{"vbuckets_per_step":64,"pause_ms":0}"#;
    let (status, _) = call(&cluster, "POST", "/topology/rebalance", quickly).await;
    assert_eq!(status, 200);
    let (_, done) = call(&cluster, "GET", "/topology/rebalance", "").await;
    assert_eq!(
        (&done["state"], &done["moved"]),
        (&json!("done"), &done["total"])
    );
    found().await;
}

#[tokio::test]
async fn a_request_that_waits_for_a_rebalance_reports_its_cancellation() {
    let cluster = controlled().await;
    let slowly = r#"{"node":0,"vbuckets_per_step":1,"pause_ms":60000}"#;
    let waiting = call(&cluster, "POST", "/topology/rebalance-out", slowly);
    let cancelling = async {
        while cluster.rebalance_status().is_none() {
            tokio::task::yield_now().await;
        }
        cluster.cancel_rebalance().await.unwrap()
    };
    let ((status, answer), cancelled) = tokio::join!(waiting, cancelling);
    assert_eq!(status, 409, "{answer}");
    assert_eq!(
        cancelled.state,
        steadfast_cluster::topology::RebalanceState::Cancelled
    );
    assert_eq!(cluster.nodes().len(), 2, "the node stays");
}

#[tokio::test]
async fn the_error_names_a_control_port_that_is_in_use() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let error = TestCluster::builder().control(address.port()).start().await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn user_names_that_clients_cannot_send_are_rejected() {
    for (builder, problem) in [
        (TestCluster::builder().host(""), "host"),
        (TestCluster::builder().host("a b"), "host"),
        (TestCluster::builder().user("", "x"), "user"),
        (TestCluster::builder().user("a:b", "x"), "user"),
        (TestCluster::builder().user("a", ""), "password"),
    ] {
        let error = builder.start().await.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn holds_clock_and_error_map_can_be_controlled() {
    let cluster = controlled().await;
    let (status, hold) = call(
        &cluster,
        "POST",
        "/holds",
        r#"{"what":"replication","node":1}"#,
    )
    .await;
    assert_eq!(status, 201);
    assert_eq!(
        call(&cluster, "DELETE", &format!("/holds/{}", hold["id"]), "")
            .await
            .0,
        200
    );
    assert_eq!(call(&cluster, "DELETE", "/holds/7", "").await.0, 404);
    let mut client = Client::for_key(&cluster, "k").await;
    client.set_with_expiry("k", "1", 60).await;
    assert_eq!(
        call(&cluster, "POST", "/clock", r#"{"advance_ms":61000}"#)
            .await
            .0,
        200
    );
    assert_eq!(client.get("k").await.status(), Status::KeyNotFound);
    let entry = r#"{"name":"X","desc":"made up","attrs":["retry-later"]}"#;
    assert_eq!(call(&cluster, "PUT", "/error-map/fff0", entry).await.0, 200);
    let request = steadfast_wire::FrameBuilder::request(Opcode::GetErrorMap).value([0, 2]);
    let map = client.call(request).await;
    assert!(String::from_utf8_lossy(map.value()).contains("\"fff0\""));
    let (_, ca) = call(&cluster, "GET", "/ca", "").await;
    assert!(
        ca.as_str()
            .unwrap()
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    let (_, help) = call(&cluster, "GET", "/", "").await;
    assert!(help.as_str().unwrap().contains("POST   /faults"));
}

#[tokio::test]
async fn management_serves_bootstrap_and_obeys_faults() {
    use steadfast_cluster::Service;
    use steadfast_cluster::fault::Fault;
    let cluster = controlled().await;
    let address = cluster.addresses(Service::Management)[0].clone();
    assert_eq!(
        http(&address, "GET", "/pools", "host: x\r\n", "").await.0,
        200
    );
    assert_eq!(
        http(
            &address,
            "GET",
            "/pools/default/nodeServices",
            "host: x\r\n",
            ""
        )
        .await
        .0,
        401
    );
    let _fault = cluster.fault(
        Fault::on_service(Service::Management)
            .key("/pools")
            .answer_http(503, "later"),
    );
    assert_eq!(
        http(&address, "GET", "/pools", "host: x\r\n", "").await,
        (503, "later".to_owned())
    );
    let query = cluster.addresses(Service::Query)[0].clone();
    assert_eq!(
        http(&query, "GET", "/admin/ping", "host: x\r\n", "")
            .await
            .0,
        200
    );
}

#[tokio::test]
async fn a_request_needs_the_token_a_known_host_json_and_no_origin() {
    let cluster = controlled().await;
    let address = cluster.control_address().unwrap().to_string();
    assert!(address.starts_with("127.0.0.1:"));
    let token = format!("authorization: Bearer {}\r\n", cluster.control_token());
    let user = r#"{"name":"evil","password":"secret1"}"#;
    for (headers, status) in [
        (
            "host: localhost\r\ncontent-type: application/json\r\n".to_owned(),
            401,
        ),
        (
            "host: localhost\r\nauthorization: Bearer nope\r\n".to_owned(),
            401,
        ),
        (
            format!("host: localhost\r\n{token}content-type: text/plain\r\n"),
            415,
        ),
        (format!("host: localhost\r\n{token}"), 415),
        (
            format!("host: evil.example\r\n{token}content-type: application/json\r\n"),
            403,
        ),
        (
            format!(
                "host: {address}\r\norigin: http://evil.example\r\n{token}content-type: application/json\r\n"
            ),
            403,
        ),
    ] {
        let (refused, body) = http(&address, "POST", "/users", &headers, user).await;
        assert_eq!(refused, status, "{headers}: {body}");
        assert!(cluster.users().rights("evil").is_none());
    }
    let (refused, _) = http(&address, "GET", "/status", "host: localhost\r\n", "").await;
    assert_eq!(refused, 401);
    let right =
        format!("host: {address}\r\n{token}content-type: application/json; charset=utf-8\r\n");
    let (status, _) = http(&address, "POST", "/users", &right, user).await;
    assert_eq!(status, 201);
    assert!(cluster.users().rights("evil").is_some());
}

#[tokio::test]
async fn the_endpoint_stays_on_loopback_and_takes_a_chosen_token() {
    let builder = || TestCluster::builder().control(0).control_token("t-1");
    let cluster = builder().bind([0, 0, 0, 0].into()).host("127.0.0.1");
    let cluster = cluster.start().await.unwrap();
    assert!(cluster.control_address().unwrap().ip().is_loopback());
    assert_eq!(cluster.control_token(), "t-1");
    for token in ["", "a b", "a@b"] {
        assert!(
            builder().control_token(token).start().await.is_err(),
            "{token:?}"
        );
    }
}
