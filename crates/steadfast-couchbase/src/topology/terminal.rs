//! Terminal states: permanent failures to connect, such as rejected credentials.
//!
//! RFC 0049 revision 16, "Fail Fast (Terminal Errors)": every connection that
//! tracks the topology remembers that its credentials or its TLS were refused,
//! until that succeeds on it; a bucket remembers that it was not opened, until
//! it is, on any connection. Operations look here only when they cannot be
//! dispatched (D19): as long as one way works, it is used.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steadfast::Reason;

use super::Address;
use super::missing_bucket::MissingBuckets;
use crate::kv::handshake::{Reached, Rejected};
use crate::reason::{AUTHENTICATION_ERROR, BUCKET_ACCESS_ERROR, SERVER_NOT_PROVEN, TLS_ERROR};

/// Identifies a connection by its bucket, if any, and its node.
pub(crate) type ConnectionKey = (Option<Arc<str>>, Address);

/// The terminal states of all connections of a client.
#[derive(Default)]
pub(crate) struct TerminalStates {
    states: Mutex<HashMap<ConnectionKey, Rejected>>,
    missing: Mutex<MissingBuckets>,
}

impl TerminalStates {
    /// Records a rejected connection. Returns whether it is a new terminal state.
    /// Steps that succeeded clear their earlier failures; an unreachable node does
    /// not clear its rejection of the credentials.
    pub(crate) fn record(&self, key: &ConnectionKey, rejected: &Rejected) -> bool {
        let mut states = self.states.lock();
        clear(&mut states, key, rejected.reached);
        if !is_terminal(rejected.reason) {
            return false;
        }
        let before = states.insert(key.clone(), rejected.clone());
        let is_new = before.is_none_or(|before| before.reason != rejected.reason);
        if is_new {
            // The only warning: operations that fail because of it do not log one each.
            tracing::warn!(
                reason = rejected.reason.name(),
                bucket = key.0.as_deref(),
                node = %key.1,
                note = rejected.note,
                "the server rejects connections"
            );
        }
        is_new
    }

    /// Records that a node does not have a bucket. `nodes` are the nodes of the newest config.
    /// Returns whether the bucket is missing after so much patience (D4).
    pub(crate) fn record_unknown_bucket(
        &self,
        bucket: &Arc<str>,
        node: &Address,
        nodes: &[Address],
        patience: Duration,
    ) -> bool {
        self.missing.lock().record(bucket, node, nodes, patience)
    }

    /// Clears the state of an opened connection, and of its bucket.
    pub(crate) fn opened(&self, key: &ConnectionKey) {
        if let Some(bucket) = &key.0 {
            self.missing.lock().forget(bucket);
        }
        clear(&mut self.states.lock(), key, Reached::Bucket);
    }

    /// Forgets rejections of credentials that were replaced.
    pub(crate) fn forget_credentials(&self) {
        self.states
            .lock()
            .retain(|_, rejected| !rejected.is_of_credentials());
    }

    /// Forgets a connection that the client no longer has.
    pub(crate) fn forget(&self, key: &ConnectionKey) {
        self.states.lock().remove(key);
    }

    /// Forgets all other connections without a bucket.
    pub(crate) fn forget_unless(&self, key: &ConnectionKey) {
        let mut states = self.states.lock();
        states.retain(|known, _| known.0.is_some() || known == key);
    }

    /// Forgets the entries of a bucket that are not its nodes', after it was opened.
    pub(crate) fn forget_seeds(&self, key: &ConnectionKey, is_node: impl Fn(&Address) -> bool) {
        let mut states = self.states.lock();
        states.retain(|known, _| known.0 != key.0 || is_node(&known.1));
    }

    /// The terminal state for operations on any service.
    pub(crate) fn for_cluster(&self) -> Option<Rejected> {
        let order = [&AUTHENTICATION_ERROR, &SERVER_NOT_PROVEN, &TLS_ERROR];
        self.first(&order, |_| true)
    }

    /// The terminal state for operations on this bucket, in the order of D19.
    pub(crate) fn for_bucket(&self, bucket: &str) -> Option<Rejected> {
        self.for_cluster().or_else(|| {
            self.first(&[&BUCKET_ACCESS_ERROR], |key| {
                key.0.as_deref() == Some(bucket)
            })
        })
    }

    fn first(
        &self,
        order: &[&'static Reason],
        matches: impl Fn(&ConnectionKey) -> bool,
    ) -> Option<Rejected> {
        let states = self.states.lock();
        order.iter().find_map(|reason| {
            states
                .iter()
                .find(|(key, rejected)| rejected.reason == *reason && matches(key))
                .map(|(_, rejected)| rejected.clone())
        })
    }
}

/// Clears the states of steps that a connection has passed.
fn clear(states: &mut HashMap<ConnectionKey, Rejected>, key: &ConnectionKey, reached: Reached) {
    states.retain(|known, rejected| {
        let passed = |reason: &Reason, at: Reached| rejected.reason == reason && reached >= at;
        let own = passed(&TLS_ERROR, Reached::Answers)
            || passed(&AUTHENTICATION_ERROR, Reached::Authentication)
            || passed(&SERVER_NOT_PROVEN, Reached::Authentication);
        let for_bucket = passed(&BUCKET_ACCESS_ERROR, Reached::Bucket);
        !(own && known == key || for_bucket && known.0 == key.0)
    });
}

/// Returns whether a reason is a terminal state.
pub(crate) fn is_terminal(reason: &Reason) -> bool {
    let terminal = [
        &AUTHENTICATION_ERROR,
        &SERVER_NOT_PROVEN,
        &TLS_ERROR,
        &BUCKET_ACCESS_ERROR,
    ];
    terminal.contains(&reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::SOCKET_NOT_AVAILABLE;

    fn key(bucket: Option<&str>, port: u16) -> ConnectionKey {
        (bucket.map(Into::into), Address::new("node", port))
    }

    fn rejected(reason: &'static Reason) -> Rejected {
        Rejected::new(reason, "test".to_owned())
    }

    fn reason(rejected: Option<Rejected>) -> Option<&'static str> {
        rejected.map(|rejected| rejected.reason.name())
    }

    #[test]
    fn authentication_comes_before_tls_and_tls_before_the_bucket() {
        let terminals = TerminalStates::default();
        let bucket = key(Some("travel"), 1);
        terminals.record(&bucket, &rejected(&BUCKET_ACCESS_ERROR));
        assert_eq!(
            reason(terminals.for_bucket("travel")),
            Some("BUCKET_ACCESS_ERROR")
        );
        assert_eq!(reason(terminals.for_bucket("other")), None);
        assert_eq!(reason(terminals.for_cluster()), None);
        terminals.record(&key(None, 1), &rejected(&TLS_ERROR));
        assert_eq!(reason(terminals.for_bucket("travel")), Some("TLS_ERROR"));
        terminals.record(&key(None, 2), &rejected(&AUTHENTICATION_ERROR));
        assert_eq!(
            reason(terminals.for_bucket("other")),
            Some("AUTHENTICATION_ERROR")
        );
    }

    #[test]
    fn a_connection_s_state_is_cleared_by_its_own_success_only() {
        let terminals = TerminalStates::default();
        terminals.record(&key(None, 1), &rejected(&AUTHENTICATION_ERROR));
        terminals.opened(&key(None, 2));
        assert_eq!(
            reason(terminals.for_cluster()),
            Some("AUTHENTICATION_ERROR")
        );
        terminals.record(&key(None, 1), &rejected(&SOCKET_NOT_AVAILABLE));
        assert_eq!(
            reason(terminals.for_cluster()),
            Some("AUTHENTICATION_ERROR")
        );
        terminals.opened(&key(None, 1));
        assert_eq!(reason(terminals.for_cluster()), None);
    }

    #[test]
    fn a_connection_that_gets_further_clears_what_it_got_past() {
        let states = [
            (&TLS_ERROR, Reached::Answers),
            (&AUTHENTICATION_ERROR, Reached::Authentication),
            (&SERVER_NOT_PROVEN, Reached::Authentication),
            (&BUCKET_ACCESS_ERROR, Reached::Bucket),
        ];
        let all = [
            Reached::Nothing,
            Reached::Answers,
            Reached::Authentication,
            Reached::Bucket,
        ];
        for (terminal, behind) in states {
            for reached in all {
                let terminals = TerminalStates::default();
                let key = key(Some("travel"), 1);
                terminals.record(&key, &rejected(terminal));
                // What ends it now is nothing that lasts.
                let mut lost = rejected(&SOCKET_NOT_AVAILABLE);
                lost.reached = reached;
                assert!(!terminals.record(&key, &lost));
                let left = (reached < behind).then_some(terminal.name());
                let found = reason(terminals.for_bucket("travel"));
                assert_eq!(found, left, "{terminal} {reached:?}");
            }
        }
    }

    #[test]
    fn a_bucket_s_state_is_cleared_by_any_connection_that_opens_it() {
        let terminals = TerminalStates::default();
        terminals.record(&key(Some("a"), 1), &rejected(&BUCKET_ACCESS_ERROR));
        terminals.record(&key(Some("b"), 1), &rejected(&BUCKET_ACCESS_ERROR));
        terminals.opened(&key(Some("a"), 2));
        assert_eq!(reason(terminals.for_bucket("a")), None);
        assert_eq!(
            reason(terminals.for_bucket("b")),
            Some("BUCKET_ACCESS_ERROR")
        );
    }

    #[test]
    fn a_connection_that_is_no_longer_used_is_forgotten() {
        let terminals = TerminalStates::default();
        terminals.record(&key(None, 1), &rejected(&TLS_ERROR));
        terminals.forget(&key(None, 1));
        assert_eq!(reason(terminals.for_cluster()), None);
    }
}
