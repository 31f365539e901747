//! Classes of errors of this project's own client.

use steadfast_couchbase::{Error, ErrorKind, reason};

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

/// Classifies an error. Faults explain timeouts, errors of durability, and errors of the query
/// service. Other errors of the cluster are explained if an attempt failed for a reason that may be
/// retried. Errors such as "document exists" are never explained by an earlier failed attempt.
fn class(error: &Error) -> ErrorClass {
    match error.kind() {
        ErrorKind::DocumentNotFound => ErrorClass::NotFound,
        ErrorKind::DocumentExists => ErrorClass::Exists,
        ErrorKind::CasMismatch => ErrorClass::CasMismatch,
        ErrorKind::AuthenticationFailure => ErrorClass::Authentication,
        ErrorKind::AmbiguousTimeout
        | ErrorKind::UnambiguousTimeout
        | ErrorKind::DurabilityImpossible
        | ErrorKind::DurabilityAmbiguous => ErrorClass::Explained,
        ErrorKind::DmlFailure | ErrorKind::IndexFailure
            if error
                .context()
                .http()
                .is_some_and(|http| http.code.is_some()) =>
        {
            ErrorClass::Explained
        }
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

    #[tokio::test]
    async fn only_a_cut_explains_that_a_response_ends_after_its_first_row() {
        let embedded = Embedded::start_here(1, 7, false).await.unwrap();
        let cluster = embedded.cluster();
        let access = Access::embedded(&embedded);
        let client = Cluster::connect(&access.connection_string, access.credentials);
        let client = client.await.unwrap();
        let bucket = client.bucket(&access.bucket);
        bucket.wait_until_ready(access.ready_within).await.unwrap();
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
}
