use super::*;

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
