//! Panics of user code: one fails its request, and nothing else.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::strategy::{Cause, Refusal};

/// Raised by a request whose strategy, classifier, observer or rule of idempotency panicked ([D13](crate::decisions#d13)).
#[derive(Debug)]
pub struct Panicked {
    message: String,
}

/// Runs a user's code. A panic becomes a refusal with its message.
///
/// # Errors
/// If the code panics.
#[inline]
pub fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, Refusal> {
    // Unwind safety: what the closure can reach belongs to the request, which
    // fails, or to the strategy, whose own state is its author's to guard.
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| panicked(&*payload))
}

#[cold]
fn panicked(payload: &(dyn Any + Send)) -> Refusal {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    Refusal::new(Cause::StrategyFailed).raising(Panicked { message })
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the retry strategy, classifier, observer or rule of idempotency panicked: {}",
            self.message
        )
    }
}

impl StdError for Panicked {}
