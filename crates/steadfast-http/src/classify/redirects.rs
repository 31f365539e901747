//! Redirects that a client followed by itself.
//!
//! A `POST` that got a 303 was applied. It must not be sent again, whatever happens
//! to the `GET` that follows. So after a redirect no failure proves that the
//! request was not applied (decision D48, docs/decisions.md).

use steadfast::{Failure, Stage};

/// The knowledge about redirects between a request and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirects {
    /// There were none.
    None,
    /// The client may have followed some.
    Unknown,
    /// There was at least one.
    #[cfg(feature = "reqwest-any")]
    Followed,
}

impl Redirects {
    /// Removes the proof from a failure that may not be about the request itself, but
    /// about a later one.
    pub(super) fn weaken(self, mut failure: Failure) -> Failure {
        let after = match self {
            Redirects::None => return failure,
            Redirects::Unknown if failure.stage.may_have_been_applied() => return failure,
            Redirects::Unknown => "perhaps after a redirect",
            #[cfg(feature = "reqwest-any")]
            Redirects::Followed => "after a redirect",
        };
        failure.stage = match failure.stage {
            Stage::NotSent | Stage::InFlight => Stage::InFlight,
            Stage::Responded | Stage::Inconclusive => Stage::Inconclusive,
        };
        let note = format!("{}, {after}", failure.note().unwrap_or("failed"));
        failure.with_note(note)
    }
}
