//! Classes of errors of this project's own client.

use steadfast_couchbase::{Error, ErrorKind, reason};

use steadfast_wire::Status;

use super::{ClientError, ErrorClass};

impl From<Error> for ClientError {
    fn from(error: Error) -> Self {
        Self {
            class: class(&error),
            ambiguous: error.is_ambiguous(),
            timeout: error.is_timeout(),
            name: error.kind().name().to_owned(),
            history: format!("{error:#}"),
        }
    }
}

/// Classifies an error. Faults explain timeouts, errors of durability, and documents that the query
/// service cannot reach. Other errors of the cluster are explained if an attempt failed for a reason that may be
/// retried. Errors such as "document exists" are never explained by an earlier failed attempt.
fn class(error: &Error) -> ErrorClass {
    match error.kind() {
        ErrorKind::DocumentNotFound => ErrorClass::NotFound,
        ErrorKind::DocumentExists => ErrorClass::Exists,
        ErrorKind::CasMismatch => ErrorClass::CasMismatch,
        ErrorKind::AuthenticationFailure if is_denied(error) => ErrorClass::Denied,
        ErrorKind::AuthenticationFailure => ErrorClass::Authentication,
        ErrorKind::AmbiguousTimeout
        | ErrorKind::UnambiguousTimeout
        | ErrorKind::DurabilityImpossible
        | ErrorKind::DurabilityAmbiguous => ErrorClass::Explained,
        ErrorKind::DmlFailure | ErrorKind::IndexFailure => class_of_statement(error),
        ErrorKind::RequestCanceled if is_cut_after_rows(error) => ErrorClass::Explained,
        ErrorKind::RequestCanceled
        | ErrorKind::ServiceNotAvailable
        | ErrorKind::InternalServerFailure
        | ErrorKind::TemporaryFailure
        | ErrorKind::DocumentLocked
        | ErrorKind::DurableWriteInProgress
        | ErrorKind::DurableWriteReCommitInProgress
            // An unknown reason explains nothing.
            if error.reasons().iter().any(|seen| seen != &reason::UNKNOWN) =>
        {
            if error.reasons().contains(&reason::AUTHENTICATION_ERROR) {
                ErrorClass::Authentication
            } else {
                ErrorClass::Explained
            }
        }
        _ => ErrorClass::Unexplained,
    }
}

/// Returns whether the cluster knows the user, who lacks rights: EACCESS, or the same of the query
/// service.
fn is_denied(error: &Error) -> bool {
    let status = error.context().kv().and_then(|kv| kv.status);
    let code = error.context().http().and_then(|http| http.code);
    status == Some(Status::AccessError) || code == Some(UNAUTHORIZED)
}

/// The query service's code for a statement that the user may not run.
const UNAUTHORIZED: u64 = 13_014;

/// The query service's code for documents that it could not read.
const BULK_GET: u64 = 12_008;
/// The query service's code for a document that it could not change.
const DML: u64 = 12_009;
/// The cause of a failed insert, as servers call it, and as the test server does.
const DUPLICATE_KEY: [&str; 2] = ["Duplicate Key", "KEY_EEXISTS"];

/// Classifies an error of the query service about documents or indexes. While no node serves a
/// document, the service can neither read nor change it. No fault makes a statement fail in
/// another way: keyspaces and indexes of the workload stay, and its keys are new.
fn class_of_statement(error: &Error) -> ErrorClass {
    let Some(http) = error.context().http() else {
        return ErrorClass::Unexplained;
    };
    let message = http.message.as_deref().unwrap_or_default();
    let is_duplicate = DUPLICATE_KEY.iter().any(|cause| message.contains(cause));
    match http.code {
        Some(DML) if is_duplicate => ErrorClass::Exists,
        Some(BULK_GET | DML) => ErrorClass::Explained,
        _ => ErrorClass::Unexplained,
    }
}

/// Returns whether the connection of a response ended after its first row. Then the attempt has
/// succeeded and is not retried, so the error has neither a report nor a reason. A closed
/// client returns the same kind of error. That stays unexplained, because a run never closes its
/// client.
fn is_cut_after_rows(error: &Error) -> bool {
    let context = error.context();
    let status = context.http().and_then(|http| http.status);
    context.report().is_none()
        && status == Some(200)
        && context
            .note()
            .is_some_and(|note| note.starts_with("the response broke off"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use steadfast_cluster::script::Script;
    use steadfast_cluster::{Service, TestCluster};
    use steadfast_couchbase::Cluster;

    use super::*;
    use crate::client::Access;
    use crate::embedded::Embedded;

    /// Returns the error of a statement with this response. The client is closed after the first
    /// row if asked to.
    async fn failed(cluster: &TestCluster, client: &Cluster, script: Script, close: bool) -> Error {
        let _guard = cluster.script(script);
        let query = client.query("SELECT 1").retry(steadfast::FailFast::new());
        let mut rows = match query.await {
            Ok(rows) => rows,
            Err(error) => return error,
        };
        rows.next::<Value>().await.unwrap();
        if close {
            client.close().await;
        }
        rows.all::<Value>().await.unwrap_err()
    }

    async fn connect(embedded: &Embedded) -> Cluster {
        let access = Access::embedded(embedded);
        let client = Cluster::connect(&access.connection_string, access.credentials);
        let client = client.await.unwrap();
        let bucket = client.bucket(&access.bucket);
        bucket.wait_until_ready(access.ready_within).await.unwrap();
        client
    }

    #[tokio::test]
    async fn only_a_cut_explains_that_a_response_ends_after_its_first_row() {
        let embedded = Embedded::start_here(1, 7, false).await.unwrap();
        let cluster = embedded.cluster();
        let client = connect(&embedded).await;
        let rows = |count| Script::on(Service::Query).rows(vec![json!(1); count]);

        let cut = failed(cluster, &client, rows(3).then_cut(), false).await;
        assert!(cut.reasons().is_empty(), "{cut:#}");
        assert_eq!(class(&cut), ErrorClass::Explained, "{cut:#}");
        // No row came, so the attempt failed, with a reason.
        let early = failed(cluster, &client, rows(0).then_cut(), false).await;
        assert!(!early.reasons().is_empty());
        assert_eq!(class(&early), ErrorClass::Explained, "{early:#}");
        let invalid = Script::on(Service::Query).answer(200, r#"{"results":[1,}"#);
        let invalid = failed(cluster, &client, invalid, false).await;
        assert_eq!(class(&invalid), ErrorClass::Unexplained, "{invalid:#}");
        let slow = rows(1000).pause(Duration::from_millis(50));
        let closed = failed(cluster, &client, slow, true).await;
        assert_eq!(closed.kind(), ErrorKind::RequestCanceled);
        assert_eq!(class(&closed), ErrorClass::Unexplained, "{closed:#}");
    }

    #[tokio::test]
    async fn of_errors_about_documents_only_missing_nodes_are_explained() {
        let embedded = Embedded::start_here(2, 7, false).await.unwrap();
        let cluster = embedded.cluster();
        let client = connect(&embedded).await;
        let run = async |statement: &str| client.query(statement).await.map(drop);

        let insert = r#"INSERT INTO load (KEY, VALUE) VALUES ("taken", 1)"#;
        run(insert).await.unwrap();
        let taken = run(insert).await.unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::DmlFailure);
        assert_eq!(class(&taken), ErrorClass::Exists, "{taken:#}");

        // What other servers say, and what no fault of a run can cause.
        for (code, msg, expected) in [
            (
                12_009,
                "DML Error - cause: Duplicate Key: k",
                ErrorClass::Exists,
            ),
            (12_008, "bulk get - cause: dial tcp", ErrorClass::Explained),
            (12_003, "Keyspace not found", ErrorClass::Unexplained),
            (12_015, "Index scan timed out", ErrorClass::Unexplained),
            (14_000, "Indexer in warmup", ErrorClass::Unexplained),
        ] {
            let body = json!({"errors": [{"code": code, "msg": msg}]}).to_string();
            let script = Script::on(Service::Query).answer(500, body);
            let error = failed(cluster, &client, script, false).await;
            assert_eq!(class(&error), expected, "{error:#}");
        }

        // Half of the documents are on the node that is down now.
        cluster.crash(cluster.nodes()[1]).await.unwrap();
        let keys: Vec<String> = (0..40).map(|key| format!("\"{key}\"")).collect();
        let select = format!("SELECT RAW 1 FROM load USE KEYS [{}]", keys.join(", "));
        let values: Vec<String> = keys
            .iter()
            .map(|key| format!("VALUES ({key}, 1)"))
            .collect();
        let insert = format!("INSERT INTO load {}", values.join(", "));
        for (statement, kind) in [
            (select, ErrorKind::IndexFailure),
            (insert, ErrorKind::DmlFailure),
        ] {
            let error = run(&statement).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{error:#}");
            assert_eq!(class(&error), ErrorClass::Explained, "{error:#}");
        }
    }
}
