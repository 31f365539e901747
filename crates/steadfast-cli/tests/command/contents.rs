//! The scopes, collections, users and documents that a cluster starts with.

use serde_json::Value;

use crate::support::{Output, Running, command, run, steadfast};

/// Runs a command on documents as a user.
fn run_as(user: &str, arguments: &[&str]) -> Output {
    let mut command = command(arguments);
    command
        .args(["--user", user])
        .env("STEADFAST_PASSWORD", "secret");
    run(command)
}

/// A directory with a file of two documents.
fn documents() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("documents.json");
    std::fs::write(&path, r#"{"a:1": {"name": "Ada"}, "a:2": [1, 2]}"#).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

#[test]
fn a_cluster_starts_with_collections_users_and_documents() {
    let (_directory, path) = documents();
    let load = format!("travel/inventory/airline={path}");
    let cluster = Running::start(&[
        "--vbuckets",
        "16",
        "--bucket",
        "travel",
        "--bucket",
        "other",
        "--scope",
        "inventory",
        "--collection",
        "airline",
        "--collection",
        "tenant.users",
        "--user",
        "reader:secret:data_reader[travel]",
        "--user",
        "writer:secret:data_writer[travel:inventory:airline],data_reader[travel]",
        "--load",
        &load,
        "--load",
        &path,
    ]);
    assert_eq!(
        cluster.facts("collection"),
        ["inventory.airline", "tenant.users"]
    );
    assert_eq!(cluster.facts("user"), ["reader", "writer", "Administrator"]);
    assert_eq!(cluster.fact("documents"), "4");

    let connect = cluster.fact("connect");
    let airline = format!("{connect}/travel/inventory/airline");
    let found = run_as("reader", &["get", &airline, "a:1"]);
    assert_eq!(
        (found.status, found.stdout.trim()),
        (0, r#"{"name":"Ada"}"#),
        "{found:?}"
    );
    let found = run_as("reader", &["get", &format!("{connect}/travel"), "a:2"]);
    assert_eq!(
        (found.status, found.stdout.trim()),
        (0, "[1,2]"),
        "{found:?}"
    );
    // Roles hold, and every bucket has the collections.
    // A load is refused before it begins, because it would write.
    let denied = run_as(
        "reader",
        &["load", "--connect", &format!("{connect}/travel")],
    );
    assert_eq!(denied.status, 1, "{denied:?}");
    assert!(!denied.stdout.contains("operations"), "{denied:?}");
    let denied = run_as("reader", &["upsert", &airline, "k", "1", "--timeout", "5s"]);
    assert_eq!(denied.status, 1, "{denied:?}");
    let stored = run_as("writer", &["upsert", &airline, "k", "1"]);
    assert!(stored.ok(), "{stored:?}");
    let mut command = command(&["get", &format!("{connect}/other/tenant/users"), "a:1"]);
    command
        .args(["--user", "Administrator"])
        .env("STEADFAST_PASSWORD", "password");
    assert_eq!(run(command).status, 3);
}

#[test]
fn the_contents_are_in_the_json() {
    let (_directory, path) = documents();
    let schedule = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(schedule.path(), "0s stop\n").unwrap();
    let output = steadfast(&[
        "cluster",
        "--json",
        "--vbuckets",
        "16",
        "--collection",
        "users",
        "--load",
        &path,
        "--user",
        "app:secret:data_reader[default]",
        "--schedule",
        schedule.path().to_str().unwrap(),
    ]);
    assert!(output.ok(), "{output:?}");
    let facts: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(facts["username"], "app");
    assert_eq!(facts["users"][0]["roles"], "data_reader[default]");
    assert_eq!(facts["users"][1]["username"], "Administrator");
    assert_eq!(facts["collections"][0], "_default.users");
    assert_eq!(facts["documents"], 2);
}

#[test]
fn invalid_contents_are_rejected_before_the_cluster_starts() {
    let (directory, path) = documents();
    let list = directory.path().join("list.json");
    std::fs::write(&list, "[1]").unwrap();
    let long = directory.path().join("long.json");
    std::fs::write(&long, format!("{{\"{}\": 1}}", "k".repeat(300))).unwrap();
    let text = directory.path().join("text.json");
    std::fs::write(&text, "{").unwrap();
    let stop = directory.path().join("stop.txt");
    std::fs::write(&stop, "0s stop\n").unwrap();
    let file = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    for (arguments, problem) in [
        (vec!["--load", "/no/such/file"], "/no/such/file"),
        (vec!["--load", &file(&list)], "not a JSON object"),
        (vec!["--load", &file(&text)], "is not JSON"),
        (vec!["--load", &file(&long)], "cannot store the document"),
        (
            vec!["--load", &format!("nowhere={path}")],
            "--bucket nowhere",
        ),
        (
            vec!["--load", &format!("default/s/c={path}")],
            "--collection s.c",
        ),
        (
            vec!["--load", &format!("default/s={path}")],
            "BUCKET[/SCOPE/COLLECTION]",
        ),
        (vec!["--scope", "_nope"], "--scope _nope"),
        (vec!["--scope", "a", "--scope", "a"], "--scope a"),
        (
            vec!["--collection", "a.b", "--collection", "a.b"],
            "--collection b",
        ),
        (vec!["--collection", "a."], "--collection"),
        (
            vec!["--scope", "a", "--scope", "b", "--collection", "c"],
            "SCOPE.c",
        ),
        (vec!["--user", "a:b:king"], "NAME:PASSWORD[:ROLES]"),
        (vec!["--user", "a:b", "--user", "a:c"], "same name"),
        (
            vec!["--user", "Administrator:b:data_reader[default]"],
            "same name",
        ),
    ] {
        // A cluster that starts all the same ends at once.
        let line = ["cluster", "--vbuckets", "16", "--schedule", &file(&stop)];
        let output = steadfast(&[&line, &arguments[..]].concat());
        assert_eq!(
            (output.status, &*output.stdout),
            (2, ""),
            "{arguments:?}: {output:?}"
        );
        assert!(output.stderr.contains(problem), "{arguments:?}: {output:?}");
    }
}
