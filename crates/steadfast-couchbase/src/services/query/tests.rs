use super::*;

#[test]
fn every_code_has_the_kind_of_rfc_0058_and_the_retry_of_rfc_0049() {
    use ErrorKind::*;
    let plan = Some("QUERY_PREPARED_STATEMENT_FAILURE");
    for (code, msg, kind, retry) in [
        (1000, "read-only", Couchbase, None),
        (1080, "Timeout 1s exceeded", AmbiguousTimeout, None),
        (1190, "", Couchbase, None),
        (1191, "", RateLimited, None),
        (1192, "", RateLimited, None),
        (1193, "", RateLimited, None),
        (1194, "", RateLimited, None),
        (1195, "", Couchbase, None),
        (2120, "", AuthenticationFailure, None),
        (3000, "syntax error", ParsingFailure, None),
        (3999, "", ParsingFailure, None),
        (4000, "no index", PlanningFailure, None),
        (4039, "", PlanningFailure, None),
        (4040, "", PreparedStatementFailure, plan),
        (4041, "", PlanningFailure, None),
        (4050, "", PreparedStatementFailure, plan),
        (4060, "", PreparedStatementFailure, None),
        (4070, "", PreparedStatementFailure, plan),
        (4080, "", PreparedStatementFailure, None),
        (4090, "", PreparedStatementFailure, None),
        (4300, "The index i already exists", IndexExists, None),
        (4300, "something", PlanningFailure, None),
        (5000, "it broke", InternalServerFailure, None),
        (5000, "Index i already exist", IndexExists, None),
        (5000, "GSI index i not found", IndexNotFound, None),
        (
            5000,
            "Limit for number of indexes reached",
            QuotaLimited,
            None,
        ),
        (
            5000,
            "cause: queryport.indexNotFound",
            IndexNotFound,
            Some("QUERY_INDEX_NOT_FOUND"),
        ),
        (5001, "queryport.indexNotFound", InternalServerFailure, None),
        (10_000, "", AuthenticationFailure, None),
        (12_000, "", IndexFailure, None),
        (12_003, "Keyspace not found", IndexFailure, None),
        (12_004, "", IndexNotFound, None),
        (12_009, "Duplicate key", DmlFailure, None),
        (12_009, "CAS mismatch", CasMismatch, None),
        (12_016, "", IndexNotFound, None),
        (13_014, "", AuthenticationFailure, None),
        (14_000, "", IndexFailure, None),
        (99_999, "", Couchbase, None),
    ] {
        let (found, reason) = meaning(&ReportedError::new(code, msg), false);
        let reason = reason.map(|reason| reason.name());
        assert_eq!((found, reason), (kind, retry), "{code}");
    }
}

#[test]
fn a_timeout_of_a_query_that_only_reads_is_unambiguous() {
    let error = ReportedError::new(1080, "");
    assert_eq!(meaning(&error, true).0, ErrorKind::UnambiguousTimeout);
}
