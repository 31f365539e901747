//! Passwords in arguments are never printed.

use crate::support::{command, run};

const SECRET: &str = "hunter2";

#[test]
fn a_password_in_an_address_is_rejected_and_not_printed() {
    for address in [
        "couchbase://app:hunter2@127.0.0.1:1/travel",
        "couchbases://app:hunter2@a,b/travel/s/c",
        "couchbase://app:hun:hunter2@127.0.0.1/travel",
        "app:hunter2@127.0.0.1/travel",
        "couchbase://app:p/hunter2@127.0.0.1/travel",
        "couchbase://hunter2@127.0.0.1/travel",
        "http://app:hunter2@127.0.0.1/travel",
        "couchbase://127.0.0.1/travel?password=hunter2",
        "couchbase://127.0.0.1/travel?kv_timeout=1s&Password=hunter2",
    ] {
        for arguments in [
            &["get", address, "k"][..],
            &["upsert", address, "k", "1"],
            &["remove", address, "k"],
            &["query", address, "SELECT 1"],
            &["doctor", address],
            &["doctor", "couchbase://127.0.0.1", address],
            &["get", "couchbase://127.0.0.1", "k", "--timeout", address],
            &["get", address, "k", "--strategy", address],
            &["fault", "list", "--control", address],
            &["completions", address],
        ] {
            let mut command = command(arguments);
            command.env("STEADFAST_USER", "app");
            command.env("STEADFAST_PASSWORD", "other");
            let output = run(command);
            assert_eq!(output.status, 2, "{arguments:?}: {output:?}");
            let said = output.stdout + &output.stderr;
            assert!(!said.contains(SECRET), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn an_invalid_user_of_a_cluster_is_not_printed() {
    for user in [
        "hunter2",
        ":hunter2",
        "a\n:hunter2",
        "a:hunter2:king",
        "a:hun:hunter2",
    ] {
        let output = run(command(&["cluster", "--user", user]));
        assert_eq!(output.status, 2, "{output:?}");
        let said = output.stdout + &output.stderr;
        assert!(said.contains("NAME:PASSWORD"), "{said}");
        assert!(!said.contains(SECRET), "{said}");
        let output = run(command(&["control", "put-user", user, "--control", "a:1"]));
        assert_eq!(output.status, 2, "{output:?}");
        let said = output.stdout + &output.stderr;
        assert!(!said.contains(SECRET), "{said}");
    }
}
