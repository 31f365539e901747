//! Looks inside errors for calls of this engine.
//!
//! Three attempts of an inner call in each of three attempts of an outer one make nine. So
//! the classifiers of this workspace do not retry the error of a call that was retried
//! already, however it is wrapped ([D54](crate::decisions#d54)). A classifier of your own
//! may.

use std::error::Error as StdError;
use std::ops::Deref;

use crate::failure::Failure;
use crate::report::Report;

/// Returns the failure of a call inside an attempt, if that call was retried already or may
/// have been applied. Looks at the error and its sources.
///
/// ```
/// use steadfast::classify::already_retried;
/// use steadfast::{BestEffort, StrategyExt, retry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), steadfast::InvalidSetting> {
/// let strategy = BestEffort::default().max_attempts(2)?;
/// let refused = async |_| Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
/// let error = retry(&strategy).run(refused).await.unwrap_err();
/// let boxed: Box<dyn std::error::Error> = error.into();
/// assert!(already_retried(&*boxed).is_some());
/// # Ok(())
/// # }
/// ```
pub fn already_retried(error: &(dyn StdError + 'static)) -> Option<Failure> {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref::<Report>() {
            Some(report) => return report.has_used_up_retries().then(|| report.to_failure()),
            None => next = error.source(),
        }
    }
    None
}

/// An error that [`any_error`](super::any_error) can look into: an error, a box of one such
/// as `anyhow::Error`, or text. The parameter keeps these implementations apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error, a box of one, or text",
    note = "implement `std::error::Error` for it, or pass a classifier of your own: `.classify(|error: &{Self}| …)`"
)]
pub trait LookInto<Kind> {
    /// Returns it as an error, unless it is text.
    fn as_error(&self) -> Option<&(dyn StdError + 'static)>;
}

/// Marks an implementation of [`LookInto`].
#[derive(Debug)]
pub enum AnError {}

/// Marks an implementation of [`LookInto`].
#[derive(Debug)]
pub enum ABox {}

/// Marks an implementation of [`LookInto`].
#[derive(Debug)]
pub enum ALocalBox {}

/// Marks an implementation of [`LookInto`].
#[derive(Debug)]
pub enum PlainText {}

impl<E: StdError + 'static> LookInto<AnError> for E {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self)
    }
}

impl<E: Deref<Target = dyn StdError + Send + Sync>> LookInto<ABox> for E {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&**self)
    }
}

impl LookInto<ALocalBox> for Box<dyn StdError> {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&**self)
    }
}

impl<E: AsRef<str> + ?Sized> LookInto<PlainText> for E {
    fn as_error(&self) -> Option<&(dyn StdError + 'static)> {
        None
    }
}
