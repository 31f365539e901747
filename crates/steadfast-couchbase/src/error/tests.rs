use super::*;
use steadfast_wire::Status;

#[test]
fn every_kind_has_a_name_and_a_text_of_its_own() {
    let mut names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ErrorKind::ALL.len());
    assert!(
        ErrorKind::ALL
            .iter()
            .all(|kind| !kind.to_string().is_empty())
    );
}

#[test]
fn an_error_without_attempts_is_one_line_with_its_note() {
    let error = Error::new(ErrorKind::InvalidArgument, "upsert").because("the key is empty");
    assert_eq!(
        error.to_string(),
        "upsert: invalid argument: the key is empty"
    );
    assert_eq!(error.to_json()["error"], "InvalidArgument");
}

#[test]
fn an_error_about_a_path_keeps_it_when_its_response_is_added() {
    let path = KvContext {
        status: Some(Status::SubdocPathNotFound),
        path_index: Some(1),
        ..KvContext::default()
    };
    let response = KvContext {
        status: Some(Status::SubdocMultiPathFailure),
        opaque: Some(7),
        ..KvContext::default()
    };
    let error = Error::new(ErrorKind::PathNotFound, "get").with_kv(path);
    let error = error.with_kv(response);
    let kv = error.context().kv().unwrap();
    assert_eq!(
        (kv.status, kv.path_index),
        (Some(Status::SubdocPathNotFound), Some(1))
    );
    assert_eq!(kv.opaque, Some(7));
}
