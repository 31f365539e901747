//! Errors of calls in the errors of applications: `?` works, the history survives, and an
//! outer call finds out that the inner one was retried, however its error is wrapped.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use steadfast::classify::{already_retried, any_error};
use steadfast::report::Report;
use steadfast::strategy::Cause;
use steadfast::{Backoff, Error, Standard, retry};

type BoxError = Box<dyn StdError + Send + Sync>;

fn attempts(limit: u32) -> Standard {
    let builder = Standard::builder().max_attempts(limit);
    let built = builder.backoff(Backoff::none()).build();
    built.expect("the settings are valid")
}

/// A call whose attempts all fail.
fn failing(limit: u32) -> Error<io::Error> {
    let call = retry(attempts(limit)).operation("ping").idempotent(true);
    let refused = || io::Error::from(io::ErrorKind::ConnectionReset);
    let failed = call.run_blocking(|_| Err::<(), _>(refused()));
    failed.expect_err("all attempts fail")
}

/// An error that hides its source, as `#[error(transparent)]` does.
#[derive(Debug)]
struct Transparent(Error<io::Error>);

impl fmt::Display for Transparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Transparent {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// An error with a source.
#[derive(Debug)]
struct Wrapper(BoxError);

impl fmt::Display for Wrapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the order failed")
    }
}

impl StdError for Wrapper {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

macro_rules! outer_attempts {
    ($wrap:expr) => {{
        let outer = |limit| {
            let call = retry(attempts(3)).idempotent(true).classify(any_error);
            let failed = call.run_blocking(|_| Err::<(), _>($wrap(failing(limit))));
            let error = failed.unwrap_err();
            (
                error.report().attempts(),
                error.was_refused_for(Cause::NotRetryable),
            )
        };
        // An inner call that made one attempt, and one that was retried.
        (outer(1), outer(2))
    }};
}

#[test]
fn an_outer_call_does_not_retry_what_was_retried_however_it_is_wrapped() {
    let boxed = |error: Error<io::Error>| -> BoxError { error.into() };
    let seen = [
        outer_attempts!(|error| error),
        outer_attempts!(boxed),
        outer_attempts!(|error| -> Box<dyn StdError> { Box::new(error) }),
        outer_attempts!(anyhow::Error::from),
        outer_attempts!(|error| anyhow::Error::from(error).context("while ordering")),
        outer_attempts!(Transparent),
        outer_attempts!(|error| Wrapper(boxed(error))),
        outer_attempts!(|error| Wrapper(Box::new(Wrapper(boxed(error))))),
        outer_attempts!(io::Error::other),
        outer_attempts!(|error| io::Error::other(Wrapper(boxed(error)))),
    ];
    for (place, (once, retried)) in seen.into_iter().enumerate() {
        assert_eq!(once, (3, false), "{place}");
        assert_eq!(retried, (1, true), "{place}");
    }
}

/// `io::Error` classifies itself, and may contain anything.
#[test]
fn an_io_error_says_that_it_contains_a_call_that_was_retried() {
    for (limit, attempts_of_outer) in [(1, 3), (2, 1)] {
        let call = retry(attempts(3)).idempotent(true);
        let failed = call.run_blocking(|_| Err::<(), _>(io::Error::other(failing(limit))));
        assert_eq!(failed.unwrap_err().report().attempts(), attempts_of_outer);
    }
}

#[test]
fn text_is_retried_because_it_says_nothing_of_the_call_that_it_comes_from() {
    assert_eq!(outer_attempts!(|error| format!("{error}")).1, (3, false));
}

fn with_anyhow() -> anyhow::Result<u32> {
    let step = |_| -> anyhow::Result<u32> { Err(anyhow::anyhow!("no route").context("step")) };
    let call = retry(attempts(2)).idempotent(true).classify(any_error);
    Ok(call.run_blocking(step)?)
}

fn with_a_box() -> Result<u32, BoxError> {
    let call = retry(attempts(2)).idempotent(true).classify(any_error);
    Ok(call.run_blocking(|_| Err::<u32, BoxError>("no route".into()))?)
}

fn with_text() -> Result<u32, BoxError> {
    let call = retry(attempts(2)).idempotent(true).classify(any_error);
    Ok(call.run_blocking(|_| Err::<u32, _>("no route".to_owned()))?)
}

#[test]
fn the_question_mark_works_with_the_errors_of_applications() {
    let error = with_anyhow().unwrap_err();
    // With its causes, because a chain of errors would not show them.
    assert!(error.to_string().ends_with(": step: no route"), "{error}");
    for error in [with_a_box().unwrap_err(), with_text().unwrap_err()] {
        assert!(error.to_string().ends_with(": no route"), "{error}");
        assert!(already_retried(&*error).is_some());
    }
}

#[test]
fn the_history_survives_in_a_chain() {
    let error = anyhow::Error::from(failing(2)).context("while ordering");
    let text = format!("{error:#}");
    assert!(text.contains("attempt 1 after"), "{text}");
    assert!(text.contains("attempt 2 after"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let report = error
        .chain()
        .find_map(|error| error.downcast_ref::<Report>());
    assert_eq!(report.map(Report::attempts), Some(2));
    let own = error.downcast_ref::<Error<io::Error>>();
    let kind = own.and_then(Error::last_error).map(io::Error::kind);
    assert_eq!(kind, Some(io::ErrorKind::ConnectionReset));
}
