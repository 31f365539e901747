//! Chooses the SASL mechanism.
//!
//! The first message goes out before the server's list of mechanisms has come
//! back, so there is a preferred mechanism, and a choice from the list if the server
//! does not support it. Neither sends a secret in the clear unless the user allows
//! it: a hostile server could otherwise get it by offering nothing else.

use steadfast_wire::sasl::Mechanism;

use super::SaslError;
use crate::credentials::{CredentialKind, Credentials};
use crate::options::ClusterOptions;

/// The protection of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// TLS.
    Tls,
    /// Nothing.
    Clear,
    /// Nothing, and the user said that secrets may be sent over it.
    ClearButTrusted,
}

impl Channel {
    pub(crate) fn new(is_tls: bool, options: &ClusterOptions) -> Self {
        match (is_tls, options.allow_secrets_without_tls) {
            (true, _) => Self::Tls,
            (false, true) => Self::ClearButTrusted,
            (false, false) => Self::Clear,
        }
    }
}

/// The mechanism to try before the server lists its own; `None` if the TLS handshake
/// has shown the credentials.
///
/// # Errors
/// If the credentials may not be used on this channel.
pub(crate) fn preferred(
    credentials: &Credentials,
    channel: Channel,
) -> Result<Option<Mechanism>, SaslError> {
    if let (CredentialKind::Certificate(_), Channel::Tls) = (credentials.kind(), channel) {
        return Ok(None);
    }
    match acceptable(credentials, channel) {
        [first, ..] => Ok(Some(*first)),
        [] => Err(SaslError::NoMechanism(unprotected(credentials).to_owned())),
    }
}

/// Chooses a mechanism that the server offers in its response to SASL_LIST_MECHS.
///
/// # Errors
/// If nothing on the list may be used; the error says what is on it.
pub(crate) fn choose(
    credentials: &Credentials,
    channel: Channel,
    offered: &[u8],
) -> Result<Mechanism, SaslError> {
    let offers = |mechanism: &&Mechanism| {
        Mechanism::read_list(offered).any(|offered| offered == **mechanism)
    };
    let ours = acceptable(credentials, channel);
    if ours.is_empty() {
        return Err(SaslError::NoMechanism(unprotected(credentials).to_owned()));
    }
    ours.iter().find(offers).copied().ok_or_else(|| {
        let theirs: Vec<Mechanism> = Mechanism::read_list(offered).take(ALL).collect();
        SaslError::NoMechanism(format!(
            "the server offers none of {}, but {}",
            Mechanism::write_list(ours),
            match &theirs[..] {
                [] => "nothing that is known here".to_owned(),
                some => Mechanism::write_list(some),
            }
        ))
    })
}

const ALL: usize = Mechanism::ALL.len();

/// The best first. Within TLS that is PLAIN: one round trip, no computing, and
/// the only one that works for users who are kept outside the cluster.
fn acceptable(credentials: &Credentials, channel: Channel) -> &'static [Mechanism] {
    use Mechanism::{OauthBearer, Plain, ScramSha1, ScramSha256, ScramSha512};
    match (credentials.kind(), channel) {
        (CredentialKind::Password(_), Channel::Tls) => {
            &[Plain, ScramSha512, ScramSha256, ScramSha1]
        }
        (CredentialKind::Password(_), Channel::Clear) => &[ScramSha512, ScramSha256, ScramSha1],
        (CredentialKind::Password(_), Channel::ClearButTrusted) => {
            &[ScramSha512, ScramSha256, ScramSha1, Plain]
        }
        (CredentialKind::Token(_), Channel::Tls | Channel::ClearButTrusted) => &[OauthBearer],
        (CredentialKind::Token(_), Channel::Clear) | (CredentialKind::Certificate(_), _) => &[],
    }
}

fn unprotected(credentials: &Credentials) -> &'static str {
    match credentials.kind() {
        CredentialKind::Password(_) | CredentialKind::Token(_) => {
            "a token is sent within TLS only: use couchbases://"
        }
        CredentialKind::Certificate(_) => {
            "a client certificate is shown within TLS only: use couchbases://"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &[u8] = b"SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1 PLAIN OAUTHBEARER";

    fn password() -> Credentials {
        Credentials::password("app", "secret")
    }

    #[test]
    fn a_password_is_sent_plainly_within_tls_and_proved_outside() {
        for (channel, mechanism) in [
            (Channel::Tls, Mechanism::Plain),
            (Channel::Clear, Mechanism::ScramSha512),
            (Channel::ClearButTrusted, Mechanism::ScramSha512),
        ] {
            assert_eq!(preferred(&password(), channel).unwrap(), Some(mechanism));
            assert_eq!(choose(&password(), channel, SERVER).unwrap(), mechanism);
        }
    }

    #[test]
    fn a_server_that_offers_only_plain_gets_the_password_only_if_that_was_allowed() {
        let error = choose(&password(), Channel::Clear, b"PLAIN").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server offers none of SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1, but PLAIN"
        );
        let allowed = choose(&password(), Channel::ClearButTrusted, b"PLAIN");
        assert_eq!(allowed.unwrap(), Mechanism::Plain);
    }

    #[test]
    fn the_strongest_that_is_offered_is_chosen_whatever_the_order() {
        let offered = b"SCRAM-SHA1 GSSAPI SCRAM-SHA256";
        let chosen = choose(&password(), Channel::Clear, offered).unwrap();
        assert_eq!(chosen, Mechanism::ScramSha256);
        let error = choose(&password(), Channel::Clear, b"GSSAPI").unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("but nothing that is known here")
        );
    }

    #[test]
    fn a_token_needs_tls_and_a_certificate_needs_no_mechanism() {
        let token = Credentials::token("tok");
        let chosen = preferred(&token, Channel::Tls).unwrap();
        assert_eq!(chosen, Some(Mechanism::OauthBearer));
        assert!(preferred(&token, Channel::Clear).is_err());
        assert!(choose(&token, Channel::Clear, SERVER).is_err());

        let certificate = Credentials::certificate("c", "k");
        assert_eq!(preferred(&certificate, Channel::Tls).unwrap(), None);
        for channel in [Channel::Clear, Channel::ClearButTrusted] {
            assert!(preferred(&certificate, channel).is_err());
        }
    }
}
