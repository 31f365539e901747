//! `steadfast doctor`, against healthy and broken clusters.

use std::net::TcpListener;

use serde_json::Value;
use steadfast_cluster::Service;
use steadfast_cluster::fault::Fault;
use steadfast_wire::{Opcode, Status};

use crate::support::{Output, Served, command, run};

/// Returns the line of a step.
fn found<'a>(output: &'a Output, step: &str) -> &'a str {
    let lines = output.stdout.lines();
    let found = lines.filter(|line| line.split_whitespace().nth(1) == Some(step));
    let found: Vec<&str> = found.collect();
    assert_eq!(found.len(), 1, "{step} in\n{}", output.stdout);
    found[0]
}

fn works(output: &Output, step: &str) {
    assert!(
        found(output, step).starts_with('✔'),
        "{step}\n{}",
        output.stdout
    );
}

fn fails(output: &Output, step: &str, text: &str, advice: &str) {
    assert_eq!(output.status, 1, "{output:?}");
    let line = found(output, step);
    assert!(
        line.starts_with('✘') && line.contains(text),
        "{}",
        output.stdout
    );
    let mut lines = output.stdout.lines().skip_while(|other| *other != line);
    let next = lines.nth(1).unwrap();
    assert!(
        next.contains("→") && next.contains(advice),
        "{}",
        output.stdout
    );
}

fn untried(output: &Output, steps: &[&str]) {
    for step in steps {
        assert!(
            found(output, step).starts_with('–'),
            "{step}\n{}",
            output.stdout
        );
    }
}

#[test]
fn every_step_works_with_a_healthy_cluster() {
    let served = Served::start(|builder| builder.nodes(2));
    let cluster = served.cluster();
    cluster.create_scope("travel", "inventory").unwrap();
    cluster
        .create_collection("travel", "inventory", "users", 0)
        .unwrap();
    let output = served.run(&["doctor", &served.address("travel/inventory/users")]);
    assert!(output.ok(), "{output:?}");
    for step in [
        "name",
        "connect",
        "authenticate",
        "bucket",
        "nodes",
        "scope",
        "collection",
        "read",
        "kv",
        "query",
        "analytics",
        "search",
        "views",
        "management",
    ] {
        works(&output, step);
    }
    untried(&output, &["TLS"]);
    assert!(found(&output, "nodes").contains("2 of 2 connected"));
}

#[test]
fn without_a_bucket_the_other_steps_are_checked() {
    let served = Served::start(|builder| builder);
    let output = served.run(&["doctor", &served.address("")]);
    assert!(output.ok(), "{output:?}");
    untried(&output, &["bucket"]);
    works(&output, "query");
}

#[test]
fn a_wrong_port_differs_from_a_wrong_name() {
    let mut wrong = command(&["doctor", "couchbase://127.0.0.1:1/travel", "--user", "app"]);
    wrong.env("STEADFAST_PASSWORD", "secret");
    let output = run(wrong);
    works(&output, "name");
    fails(&output, "connect", "127.0.0.1:1", "nothing listens there");
    untried(&output, &["authenticate", "bucket"]);

    let unknown = "couchbase://no-such-host.invalid:11210/travel";
    let mut wrong = command(&["doctor", unknown, "--user", "app"]);
    wrong.env("STEADFAST_PASSWORD", "secret");
    let output = run(wrong);
    fails(&output, "name", "no-such-host.invalid", "spelling");
    untried(&output, &["connect", "authenticate", "bucket"]);
}

#[test]
fn a_wrong_password_is_reported() {
    let served = Served::start(|builder| builder);
    let output = served.run_as("wrong", &["doctor", &served.address("travel")]);
    works(&output, "connect");
    fails(
        &output,
        "authenticate",
        "user \"app\"",
        "check the password",
    );
    untried(&output, &["bucket"]);
}

#[test]
fn an_untrusted_certificate_is_shown_with_its_issuer() {
    let served = Served::start(|builder| builder.tls(true));
    let cluster = served.cluster();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, cluster.ca_pem().unwrap()).unwrap();
    let address = format!("{}/travel", cluster.tls_connection_string().unwrap());
    let trusted = served.run(&["doctor", &address, "--ca", path.to_str().unwrap()]);
    assert!(trusted.ok(), "{trusted:?}");
    works(&trusted, "TLS");
    assert!(
        found(&trusted, "TLS").contains("valid until"),
        "{trusted:?}"
    );
    assert!(found(&trusted, "TLS").contains("issued by CN=steadfast cluster authority"));

    // The certificate of another authority is not trusted.
    let other = Served::start(|builder| builder.tls(true));
    std::fs::write(&path, other.cluster().ca_pem().unwrap()).unwrap();
    let output = served.run(&["doctor", &address, "--ca", path.to_str().unwrap()]);
    fails(
        &output,
        "TLS",
        "issued by CN=steadfast cluster authority",
        "--ca",
    );
    untried(&output, &["authenticate", "bucket"]);

    // A missing file, or an address without TLS, is a usage error.
    let output = served.run(&["doctor", &address, "--ca", "/no/such/file"]);
    assert!(
        output.status == 2 && output.stderr.contains("/no/such/file"),
        "{output:?}"
    );
    let output = served.run(&["doctor", &served.address("travel"), "--ca", "x"]);
    assert!(
        output.status == 2 && output.stderr.contains("couchbases://"),
        "{output:?}"
    );
}

#[test]
fn a_port_with_and_without_tls_are_distinguished() {
    let served = Served::start(|builder| builder.tls(true));
    let cluster = served.cluster();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, cluster.ca_pem().unwrap()).unwrap();
    let plain = served
        .address("travel")
        .replace("couchbase:", "couchbases:");
    let output = served.run(&["doctor", &plain, "--ca", path.to_str().unwrap()]);
    fails(&output, "TLS", "", "11207");
    let secure = cluster.tls_connection_string().unwrap();
    let secure = format!("{}/travel", secure.replace("couchbases:", "couchbase:"));
    let output = served.run(&["doctor", &secure]);
    fails(&output, "authenticate", "", "couchbases://");
}

#[test]
fn a_missing_bucket_scope_or_collection_is_named() {
    let served = Served::start(|builder| builder);
    let output = served.run(&["doctor", &served.address("nope")]);
    fails(&output, "bucket", "\"nope\"", "check the spelling");
    works(&output, "query");

    let output = served.run(&["doctor", &served.address("travel/nowhere/users")]);
    fails(&output, "scope", "no scope \"nowhere\"", "create it");
    untried(&output, &["collection"]);

    served
        .cluster()
        .create_scope("travel", "inventory")
        .unwrap();
    let output = served.run(&["doctor", &served.address("travel/inventory/users")]);
    works(&output, "scope");
    fails(
        &output,
        "collection",
        "no collection \"users\"",
        "create it",
    );
    // A scope without a collection works: only the default scope has a `_default` one.
    let output = served.run(&["doctor", &served.address("travel/inventory")]);
    assert!(output.ok(), "{output:?}");
    works(&output, "scope");
}

#[test]
fn a_service_that_is_down_is_reported() {
    let served = Served::start(|builder| builder.nodes(2));
    let fault = Fault::on_service(Service::Query).cut_before_reading();
    let _guard = served.cluster().fault(fault);
    let output = served.run(&["doctor", &served.address("travel")]);
    works(&output, "read");
    fails(
        &output,
        "query",
        "0 of 2 nodes answered",
        "is the service up",
    );
    works(&output, "search");
}

#[test]
fn a_node_that_is_down_is_named() {
    let served = Served::start(|builder| builder.nodes(2));
    let nodes = served.cluster().nodes();
    let address = served.address("travel?kv_timeout=500ms");
    served.block_on(served.cluster().crash(nodes[1])).unwrap();
    let output = served.run(&["doctor", &address]);
    works(&output, "bucket");
    fails(&output, "nodes", "1 of 2 connected", "each node must be up");
}

#[test]
fn json_has_one_finding_per_line() {
    let served = Served::start(|builder| builder);
    let output = served.run_as("wrong", &["doctor", &served.address("travel"), "--json"]);
    assert_eq!(output.status, 1);
    let lines = output.stdout.lines();
    let findings: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let refused = findings
        .iter()
        .find(|each| each["step"] == "authenticate")
        .unwrap();
    assert_eq!(refused["outcome"], "fails");
    assert!(refused["advice"].is_string());
    assert_eq!(findings.last().unwrap()["outcome"], "not-tried");
}

#[test]
fn every_host_is_shown_and_ipv6_has_brackets() {
    let served = Served::start(|builder| builder.nodes(2));
    let hosts = served.cluster().connection_string();
    let address = format!("{hosts},[::1]:1,127.0.0.1:1/travel");
    let output = served.run(&["doctor", &address]);
    assert!(output.ok(), "{output:?}");
    assert!(
        found(&output, "name").contains("127.0.0.1; [::1]"),
        "{output:?}"
    );
    let connect = found(&output, "connect");
    let nodes = served.cluster().addresses(Service::KeyValue);
    for node in &nodes {
        assert!(connect.contains(&format!("{node} in ")), "{output:?}");
    }
    assert!(connect.contains("not [::1]:1: "), "{output:?}");
    assert!(connect.contains("not 127.0.0.1:1: "), "{output:?}");
}

#[test]
fn a_seed_that_accepts_and_stays_silent_is_named_and_the_next_is_tried() {
    let served = Served::start(|builder| builder);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let address = served.address("travel?connect_timeout=4s");
    let both = address.replacen("://", &format!("://{silent},"), 1);
    let output = served.run(&["doctor", &both]);
    works(&output, "authenticate");
    works(&output, "bucket");
    let text = format!("not {silent}: {silent} accepts the connection and stays silent");
    assert!(found(&output, "authenticate").contains(&text), "{output:?}");

    let alone = format!("couchbase://{silent}/travel?connect_timeout=300ms");
    let output = served.run(&["doctor", &alone]);
    fails(&output, "authenticate", "stays silent", "key-value port");
}

#[test]
fn a_connection_that_is_closed_at_once_may_be_one_too_many() {
    let served = Served::start(|builder| builder);
    let closing = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closing.local_addr().unwrap();
    std::thread::spawn(move || while closing.accept().is_ok() {});
    let output = served.run(&["doctor", &format!("couchbase://{address}/travel")]);
    fails(&output, "authenticate", "", "max_connections");
}

#[test]
fn a_node_that_warms_up_is_told_from_one_without_memory() {
    let served = Served::start(|builder| builder);
    let warming_up = Fault::on(Opcode::Get).answer(Status::TemporaryFailure);
    let _warming_up = served.cluster().fault(warming_up);
    let output = served.run(&["doctor", &served.address("travel?kv_timeout=300ms")]);
    fails(&output, "read", "KV_TEMPORARY_FAILURE", "it is warming up");
}

/// Such a bucket has no config that says where its documents are.
#[test]
fn a_memcached_bucket_is_named_as_one() {
    let served = Served::start(|builder| builder);
    let without_config = Fault::on(Opcode::GetClusterConfig).answer(Status::NotSupported);
    let _memcached = served.cluster().fault(without_config);
    let output = served.run(&["doctor", &served.address("travel")]);
    works(&output, "authenticate");
    fails(&output, "bucket", "memcached", "ephemeral bucket");
}
