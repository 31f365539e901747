//! The cases as data: a fault, how often it occurs, and the request that meets it.

mod table;

use std::fmt;
use std::time::Duration;

pub use table::FAULTS;

/// A fault of the server, and what follows from it for a client.
#[derive(Debug, PartialEq)]
pub struct ServerFault {
    /// The name in the name of a case.
    pub id: &'static str,
    /// What a client meets, as part of a sentence.
    pub text: &'static str,
    /// What the server does.
    pub action: Action,
    /// Whether the request may have been applied, as far as a client can know.
    pub applied: Applied,
    /// Whether sending the request again can help.
    pub retry: RetryValue,
    /// How long a client must wait before it comes back.
    pub least_wait: Option<Duration>,
    /// How often the fault occurs, one case each.
    pub times: &'static [Times],
}

/// What the server does to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Refuses connections for a while, then accepts them.
    Refuse,
    /// Closes the connection without reading the request.
    CloseUnread,
    /// Reads the request and closes the connection without a response.
    CloseUnanswered,
    /// Reads the request and resets the connection.
    Reset,
    /// Sends half of a successful response and closes the connection.
    CutResponse,
    /// Reads the request and sends nothing.
    StaySilent,
    /// Responds with a status.
    Respond(u16),
    /// Responds with a status and a `Retry-After`.
    RespondLater(u16, Later),
    /// Redirects to a server that refuses connections.
    Redirect(u16),
    /// Redirects to another path of this server.
    RedirectHere(u16),
    /// Redirects to another path of this server, which reads the request and closes the
    /// connection.
    RedirectThenClose(u16),
    /// Responds before it has read the body, and closes the connection.
    RespondEarly(u16),
    /// Sends a successful response, one byte at a time.
    Drip,
    /// Closes the connection in the TLS handshake.
    CutHandshake,
    /// Sends a `GOAWAY` that excludes the request.
    GoAway,
    /// Reads the request and sends a `GOAWAY` that includes it, but no response.
    GoAwayLate,
    /// Refuses the stream.
    RefuseStream,
    /// Reads the request and resets its stream.
    ResetStream,
}

impl Action {
    /// Returns whether the server asks for another request at once.
    pub(crate) const fn redirects(self) -> bool {
        matches!(
            self,
            Self::Redirect(_) | Self::RedirectHere(_) | Self::RedirectThenClose(_)
        )
    }
}

/// The protocol that a client is audited with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditProtocol {
    /// Whether the server speaks HTTP/2, and nothing else.
    pub http2: bool,
    /// Whether the server has a certificate.
    pub tls: bool,
}

impl fmt::Display for AuditProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.http2, self.tls) {
            (false, false) => "HTTP/1.1",
            (false, true) => "HTTP/1.1 with TLS",
            (true, false) => "HTTP/2 without TLS",
            (true, true) => "HTTP/2 with TLS",
        })
    }
}

/// What a `Retry-After` says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Later {
    /// Values as they are, one header each.
    Texts(&'static [&'static str]),
    /// A date three to four seconds ahead of the server's clock, which is wrong by this number of
    /// seconds. The response has a `Date`.
    Date {
        /// The error of the server's clock.
        clock_error: i64,
    },
}

/// Whether a request may have been applied when its attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// It was not, and the client can know it.
    No,
    /// The documents and the servers disagree, so that nothing is judged.
    Disputed,
    /// It may have been.
    Perhaps,
}

/// Whether sending a request again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryValue {
    /// A retry succeeds.
    Helps,
    /// The fault is permanent, or the server asks for more patience than a client has.
    Useless,
}

/// How often a fault occurs in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The first attempt fails.
    Once,
    /// The first three attempts fail.
    Thrice,
    /// Every attempt fails.
    Always,
    /// Every attempt fails, of several commands at once.
    Fleet,
}

impl Times {
    /// Decides whether the attempt with this index, from 0, fails.
    pub(crate) const fn includes(self, attempt: usize) -> bool {
        match self {
            Self::Once => attempt == 0,
            Self::Thrice => attempt < 3,
            Self::Always | Self::Fleet => true,
        }
    }

    /// How many commands run at once.
    pub(crate) const fn commands(self) -> usize {
        match self {
            Self::Fleet => 8,
            _ => 1,
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Thrice => "thrice",
            Self::Always => "always",
            Self::Fleet => "fleet",
        }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Once => "once",
            Self::Thrice => "3 times",
            Self::Always => "always",
            Self::Fleet => "always, for 8 at once",
        })
    }
}

/// A kind of request, as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestKind {
    /// The method.
    pub method: String,
    /// Whether it has an `Idempotency-Key`.
    pub keyed: bool,
}

impl RequestKind {
    /// Decides whether the request may be applied twice without harm.
    pub fn is_idempotent(&self) -> bool {
        self.keyed || is_idempotent(&self.method)
    }

    fn id(&self) -> String {
        let key = if self.keyed { "-key" } else { "" };
        format!("{}{key}", self.method.to_lowercase())
    }
}

/// Decides whether a method is idempotent (RFC 9110, section 9.2.2).
pub(crate) fn is_idempotent(method: &str) -> bool {
    ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"].contains(&method)
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.keyed { "+key" } else { "" };
        write!(f, "{}{key}", self.method)
    }
}

/// A run of the command against one fault.
#[derive(Clone, Debug)]
pub struct AuditCase {
    /// What the command is asked to send.
    pub kind: RequestKind,
    /// What the server does.
    pub fault: &'static ServerFault,
    /// How often it does that.
    pub times: Times,
}

impl AuditCase {
    /// Lists the cases of a kind of request.
    pub(crate) fn of_kind(
        kind: &RequestKind,
        protocol: AuditProtocol,
    ) -> impl Iterator<Item = Self> + '_ {
        let faults = FAULTS.iter().copied().flatten();
        let faults = faults.filter(move |fault| match fault.action {
            // HTTP/2 has its own ways to leave a request unread.
            Action::CloseUnread => !protocol.http2,
            Action::CutHandshake => protocol.tls,
            Action::GoAway | Action::GoAwayLate | Action::RefuseStream | Action::ResetStream => {
                protocol.http2
            }
            _ => true,
        });
        faults.flat_map(move |fault| {
            let case = move |times: &Times| Self {
                kind: kind.clone(),
                fault,
                times: *times,
            };
            fault.times.iter().map(case)
        })
    }

    /// The name that selects the case, such as `post/closed/once`.
    pub fn id(&self) -> String {
        format!("{}/{}/{}", self.kind.id(), self.fault.id, self.times.id())
    }

    /// Decides whether a client can know that a retry of this request does no harm.
    pub(crate) fn is_safe_to_retry(&self) -> bool {
        self.kind.is_idempotent() || self.fault.applied == Applied::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_of_cases_are_unique() {
        let kind = |keyed| RequestKind {
            method: "POST".to_owned(),
            keyed,
        };
        let kinds = [kind(false), kind(true)];
        let all = AuditProtocol {
            http2: true,
            tls: true,
        };
        let ids: Vec<String> = kinds
            .iter()
            .flat_map(|kind| AuditCase::of_kind(kind, all))
            .map(|case| case.id())
            .collect();
        let unique: HashSet<&String> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len());
        assert!(ids.contains(&"post-key/closed/once".to_owned()), "{ids:?}");
    }
}
