//! Statements with their expected responses, in files.
//!
//! Blocks have empty lines between them. The first line of a block is a statement, or the JSON of
//! a request; `t1: ` in front names its transaction, and `analytics: ` another service. The
//! indented lines after it are what is expected: rows as JSON, `changed N`, `cause JSON`, or
//! `error CODE [STATUS] [part of the message]`. A line with `#` begins a section.

use std::collections::HashMap;

use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};

use super::http::{Call, HttpReply};

/// The keys and values of all documents but the records of transactions.
pub const ALL: &str = "SELECT META().id, n FROM b WHERE META().id LIKE 'k%' ORDER BY META().id";

pub async fn query(cluster: &TestCluster, body: Value) -> HttpReply {
    let call = Call::new("POST", "/query/service").json(&body);
    call.send(cluster, Service::Query).await
}

pub async fn statement(cluster: &TestCluster, statement: &str) -> HttpReply {
    query(cluster, json!({"statement": statement})).await
}

/// Runs the blocks of a file, or of a section of it.
pub async fn run(cluster: &TestCluster, file: &str) {
    let mut transactions = HashMap::new();
    for block in file.split("\n\n") {
        let lines = block.lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (expected, first): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with(' '));
        let Some(first) = first.first() else { continue };
        let named = first.split_once(": ");
        let named =
            named.filter(|(who, _)| *who == "analytics" || who.starts_with('t') && who.len() == 2);
        let (who, text) = named.map_or(("", *first), |(who, text)| (who, text));
        let mut body = match text.starts_with('{') {
            true => serde_json::from_str(text).unwrap(),
            false => json!({"statement": if text == "ALL" { ALL } else { text }}),
        };
        let (path, service) = match who {
            "analytics" => ("/analytics/service", Service::Analytics),
            _ => ("/query/service", Service::Query),
        };
        if let Some(id) = transactions.get(who) {
            body["txid"] = Value::clone(id);
        }
        let reply = Call::new("POST", path)
            .json(&body)
            .send(cluster, service)
            .await;
        let json = reply.json();
        let begun = &json["results"][0]["txid"];
        if who.starts_with('t') && begun.is_string() {
            transactions.insert(who, begun.clone());
        }
        let mut failed = false;
        for line in expected.iter().map(|line| line.trim()) {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("error", rest) => {
                    failed = true;
                    let (code, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                    assert_eq!(reply.code().to_string(), code, "{block}\n{}", reply.body);
                    let (status, part) = rest.split_once(' ').unwrap_or((rest, ""));
                    let part = match status.parse::<u16>() {
                        Ok(status) => {
                            assert_eq!(reply.status, status, "{block}\n{}", reply.body);
                            part
                        }
                        Err(_) => rest,
                    };
                    let message = json["errors"][0]["msg"].as_str().unwrap();
                    assert!(message.contains(part), "{block}\n{message}");
                }
                ("changed", count) => {
                    let changed = &json["metrics"]["mutationCount"];
                    assert_eq!(changed.to_string(), count, "{block}\n{}", reply.body);
                }
                ("cause", cause) => {
                    let cause: Value = serde_json::from_str(cause).unwrap();
                    assert_eq!(json["errors"][0]["cause"], cause, "{block}");
                }
                _ => {
                    let rows: Value = serde_json::from_str(line).unwrap();
                    assert_eq!(json["results"], rows, "{block}\n{}", reply.body);
                }
            }
        }
        assert_eq!(
            json["status"] == "success",
            !failed,
            "{block}\n{}",
            reply.body
        );
    }
}

/// The sections of a file.
pub fn sections(file: &str) -> impl Iterator<Item = &str> {
    let sections = file.split("# ").skip(1);
    sections.filter_map(|section| Some(section.split_once('\n')?.1))
}
