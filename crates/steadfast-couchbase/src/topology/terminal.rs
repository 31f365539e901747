//! What keeps operations from being dispatched and will not mend by waiting.
//!
//! RFC 0049 revision 16, "Fail Fast (Terminal Errors)": every connection that
//! tracks the topology remembers that its credentials or its TLS were refused,
//! until that succeeds on it; a bucket remembers that it was not opened, until
//! it is, on any connection. Operations look here only when they cannot be
//! dispatched (D19): as long as one way works, it is used.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use steadfast::Reason;

use super::Address;
use crate::kv::handshake::Rejected;
use crate::reason::{AUTHENTICATION_ERROR, BUCKET_ACCESS_ERROR, TLS_ERROR};

/// The place of a connection: for which bucket, if any, to which node.
pub(crate) type Slot = (Option<Arc<str>>, Address);

/// The terminal states of all connections of a client.
#[derive(Default)]
pub(crate) struct Terminals {
    states: Mutex<HashMap<Slot, Rejected>>,
}

impl Terminals {
    /// A connection was refused. True if operations may learn something new.
    /// What is not terminal changes nothing: a node that cannot be reached has
    /// not taken back what it said of the credentials.
    pub(crate) fn refused(&self, slot: &Slot, rejected: &Rejected) -> bool {
        if !is_terminal(rejected.reason) {
            return false;
        }
        let before = self.states.lock().insert(slot.clone(), rejected.clone());
        before.is_none_or(|before| before.reason != rejected.reason)
    }

    /// A connection came about: its own state is cleared, and with it that of
    /// its bucket.
    pub(crate) fn opened(&self, slot: &Slot) {
        self.states.lock().retain(|known, rejected| {
            let own = known == slot;
            let same_bucket = known.0 == slot.0 && rejected.reason == &BUCKET_ACCESS_ERROR;
            !own && !same_bucket
        });
    }

    /// The client has other credentials: what was said of the old ones is of no
    /// account.
    pub(crate) fn forget_credentials(&self) {
        let of_credentials = [&AUTHENTICATION_ERROR, &TLS_ERROR];
        self.states
            .lock()
            .retain(|_, rejected| !of_credentials.contains(&rejected.reason));
    }

    /// The connection is no longer one of the client's.
    pub(crate) fn forget(&self, slot: &Slot) {
        self.states.lock().remove(slot);
    }

    /// Of the connections without a bucket this is the only one.
    pub(crate) fn forget_unless(&self, slot: &Slot) {
        let mut states = self.states.lock();
        states.retain(|known, _| known.0.is_some() || known == slot);
    }

    /// A bucket was found at this slot: of its other slots only those count that
    /// are its nodes'.
    pub(crate) fn forget_seeds(&self, slot: &Slot, is_node: impl Fn(&Address) -> bool) {
        let mut states = self.states.lock();
        states.retain(|known, _| known.0 != slot.0 || is_node(&known.1));
    }

    /// What keeps operations on any service from being dispatched.
    pub(crate) fn of_cluster(&self) -> Option<Rejected> {
        self.first(&[&AUTHENTICATION_ERROR, &TLS_ERROR], |_| true)
    }

    /// What keeps operations on this bucket from being dispatched, in the order
    /// of D19.
    pub(crate) fn of_bucket(&self, bucket: &str) -> Option<Rejected> {
        self.of_cluster().or_else(|| {
            self.first(&[&BUCKET_ACCESS_ERROR], |slot| {
                slot.0.as_deref() == Some(bucket)
            })
        })
    }

    fn first(
        &self,
        order: &[&'static Reason],
        matches: impl Fn(&Slot) -> bool,
    ) -> Option<Rejected> {
        let states = self.states.lock();
        order.iter().find_map(|reason| {
            states
                .iter()
                .find(|(slot, rejected)| rejected.reason == *reason && matches(slot))
                .map(|(_, rejected)| rejected.clone())
        })
    }
}

fn is_terminal(reason: &Reason) -> bool {
    [&AUTHENTICATION_ERROR, &TLS_ERROR, &BUCKET_ACCESS_ERROR].contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::SOCKET_NOT_AVAILABLE;

    fn slot(bucket: Option<&str>, port: u16) -> Slot {
        (bucket.map(Into::into), Address::new("node", port))
    }

    fn rejected(reason: &'static Reason) -> Rejected {
        let note = "test".to_owned();
        Rejected { reason, note }
    }

    fn reason(rejected: Option<Rejected>) -> Option<&'static str> {
        rejected.map(|rejected| rejected.reason.name())
    }

    #[test]
    fn authentication_comes_before_tls_and_tls_before_the_bucket() {
        let terminals = Terminals::default();
        let bucket = slot(Some("travel"), 1);
        terminals.refused(&bucket, &rejected(&BUCKET_ACCESS_ERROR));
        assert_eq!(
            reason(terminals.of_bucket("travel")),
            Some("BUCKET_ACCESS_ERROR")
        );
        assert_eq!(reason(terminals.of_bucket("other")), None);
        assert_eq!(reason(terminals.of_cluster()), None);
        terminals.refused(&slot(None, 1), &rejected(&TLS_ERROR));
        assert_eq!(reason(terminals.of_bucket("travel")), Some("TLS_ERROR"));
        terminals.refused(&slot(None, 2), &rejected(&AUTHENTICATION_ERROR));
        assert_eq!(
            reason(terminals.of_bucket("other")),
            Some("AUTHENTICATION_ERROR")
        );
    }

    #[test]
    fn a_connection_s_state_is_cleared_by_its_own_success_only() {
        let terminals = Terminals::default();
        terminals.refused(&slot(None, 1), &rejected(&AUTHENTICATION_ERROR));
        terminals.opened(&slot(None, 2));
        assert_eq!(reason(terminals.of_cluster()), Some("AUTHENTICATION_ERROR"));
        terminals.refused(&slot(None, 1), &rejected(&SOCKET_NOT_AVAILABLE));
        assert_eq!(reason(terminals.of_cluster()), Some("AUTHENTICATION_ERROR"));
        terminals.opened(&slot(None, 1));
        assert_eq!(reason(terminals.of_cluster()), None);
    }

    #[test]
    fn a_bucket_s_state_is_cleared_by_any_connection_that_opens_it() {
        let terminals = Terminals::default();
        terminals.refused(&slot(Some("a"), 1), &rejected(&BUCKET_ACCESS_ERROR));
        terminals.refused(&slot(Some("b"), 1), &rejected(&BUCKET_ACCESS_ERROR));
        terminals.opened(&slot(Some("a"), 2));
        assert_eq!(reason(terminals.of_bucket("a")), None);
        assert_eq!(
            reason(terminals.of_bucket("b")),
            Some("BUCKET_ACCESS_ERROR")
        );
    }

    #[test]
    fn a_connection_that_is_no_longer_used_is_forgotten() {
        let terminals = Terminals::default();
        terminals.refused(&slot(None, 1), &rejected(&TLS_ERROR));
        terminals.forget(&slot(None, 1));
        assert_eq!(reason(terminals.of_cluster()), None);
    }
}
