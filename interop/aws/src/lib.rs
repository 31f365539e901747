//! Only tests; see `tests/`.

/// The page of the manual, whose example is run with the tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/http/aws.md")]
    struct Aws;
}
