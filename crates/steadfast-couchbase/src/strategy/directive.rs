//! The retry specification of a status, attached to a failure.

use std::sync::Arc;

use steadfast::Failure;
use steadfast_wire::Status;
use steadfast_wire::error_map::{Attributes, ErrorDefinition, RetrySpec};

/// The retry specification of the code that an attempt was answered with.
///
/// The client attaches it to the failure, where a strategy finds it:
///
/// ```
/// use steadfast::strategy::RetryAction;
/// use steadfast::from_fn;
/// use steadfast_couchbase::RetryDirective;
///
/// let strategy = from_fn(|_request, failure| match failure.attachment::<RetryDirective>() {
///     Some(directive) => RetryAction::with_duration(directive.spec.after),
///     None => RetryAction::no_retry(),
/// });
/// # let _ = strategy;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDirective {
    /// The code.
    pub status: Status,
    /// When to retry.
    pub spec: RetrySpec,
}

impl RetryDirective {
    /// Returns the retry specification of a code, if its definition has one, has
    /// `auto-retry`, and does not have `no-retry` or `success`
    /// ([D27](steadfast::decisions#d27)).
    pub fn from_definition(status: Status, definition: &ErrorDefinition) -> Option<Self> {
        let is_automatic = definition.attributes.contains(Attributes::AUTO_RETRY);
        let asks = is_automatic && definition.indicates_retry();
        let spec = definition.retry.filter(|_| asks)?;
        Some(Self { status, spec })
    }

    /// The failure with this attached to it.
    pub fn attach_to(self, failure: Failure) -> Failure {
        failure.with_attachment(Arc::new(self))
    }
}
