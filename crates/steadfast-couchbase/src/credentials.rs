//! Credentials: a password, a token, or a client certificate.
//!
//! All connections share them, so a clone is a counted reference. They can be
//! replaced while the client runs, for new connections. They are validated when a
//! cluster is connected to: only then is it known whether TLS protects them, and
//! constructing them cannot fail.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::config_error::ConfigError;
use crate::sasl::SaltedPasswords;

/// A user and a password, a token, or a client certificate.
///
/// Secrets are wiped from memory with the last clone, and never printed:
///
/// ```
/// use steadfast_couchbase::Credentials;
///
/// let credentials = Credentials::password("app", "correct horse");
/// assert_eq!(format!("{credentials:?}"), r#"Credentials::password("app", ..)"#);
/// ```
#[derive(Clone)]
pub struct Credentials {
    kind: Arc<CredentialKind>,
}

/// The kinds of credentials.
pub(crate) enum CredentialKind {
    /// A user of the cluster.
    Password(Password),
    /// A JSON web token, which names its user itself.
    Token(Zeroizing<String>),
    /// A certificate, which is shown in the TLS handshake; there is no SASL.
    Certificate(Certificate),
}

/// A user and a password.
pub(crate) struct Password {
    pub(crate) user: String,
    pub(crate) password: Zeroizing<String>,
    /// The keys derived from the password. They belong to it, so new credentials
    /// never use old keys.
    pub(crate) salted: SaltedPasswords,
}

/// A client certificate and its key, both PEM.
pub(crate) struct Certificate {
    pub(crate) chain: Vec<u8>,
    pub(crate) key: Zeroizing<Vec<u8>>,
}

impl Credentials {
    /// A user of the cluster.
    pub fn password(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self::from_kind(CredentialKind::Password(Password {
            user: user.into(),
            password: Zeroizing::new(password.into()),
            salted: SaltedPasswords::default(),
        }))
    }

    /// A JSON web token. Only sent within TLS.
    pub fn token(token: impl Into<String>) -> Self {
        Self::from_kind(CredentialKind::Token(Zeroizing::new(token.into())))
    }

    /// A client certificate with the intermediate ones behind it, and its private
    /// key, both PEM. Needs TLS; the server takes the user from the certificate.
    pub fn certificate(chain_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        Self::from_kind(CredentialKind::Certificate(Certificate {
            chain: chain_pem.into(),
            key: Zeroizing::new(key_pem.into()),
        }))
    }

    /// The user's name, if these are a user and a password.
    pub fn user(&self) -> Option<&str> {
        match self.kind() {
            CredentialKind::Password(password) => Some(&password.user),
            CredentialKind::Token(_) | CredentialKind::Certificate(_) => None,
        }
    }

    /// Rejects invalid credentials.
    ///
    /// # Errors
    /// If a part is empty, or contains characters that the protocols cannot carry. The
    /// error names the part and never quotes it. Certificates are parsed later, with
    /// the TLS configuration.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self.kind() {
            CredentialKind::Password(Password { user, password, .. }) => {
                not_empty("user", user)?;
                no_control("user", user)?;
                if user.contains(':') {
                    let problem = "has a colon in it, which HTTP authentication cannot carry";
                    return Err(ConfigError::new("user", problem));
                }
                not_empty("password", password)?;
                no_nul("password", password)
            }
            CredentialKind::Token(token) => {
                not_empty("token", token)?;
                if token.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Ok(());
                }
                let problem = "has characters in it that no token has: a space or a line break?";
                Err(ConfigError::new("token", problem))
            }
            CredentialKind::Certificate(Certificate { chain, key }) => {
                let missing = |part| Err(ConfigError::new(part, "is empty"));
                match (chain.is_empty(), key.is_empty()) {
                    (true, _) => missing("client certificate"),
                    (_, true) => missing("key of the client certificate"),
                    (false, false) => Ok(()),
                }
            }
        }
    }

    pub(crate) fn kind(&self) -> &CredentialKind {
        &self.kind
    }

    /// The value of the HTTP header `Authorization`; `None` with a certificate.
    pub(crate) fn authorization(&self) -> Option<Zeroizing<String>> {
        let header = match self.kind() {
            CredentialKind::Password(Password { user, password, .. }) => {
                let pair = Zeroizing::new(format!("{user}:{}", password.as_str()));
                format!("Basic {}", STANDARD.encode(pair.as_bytes()))
            }
            CredentialKind::Token(token) => format!("Bearer {}", token.as_str()),
            CredentialKind::Certificate(_) => return None,
        };
        Some(Zeroizing::new(header))
    }

    fn from_kind(kind: CredentialKind) -> Self {
        Self {
            kind: Arc::new(kind),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            CredentialKind::Password(Password { user, .. }) => {
                write!(f, "Credentials::password({user:?}, ..)")
            }
            CredentialKind::Token(_) => f.write_str("Credentials::token(..)"),
            CredentialKind::Certificate(_) => f.write_str("Credentials::certificate(..)"),
        }
    }
}

fn not_empty(part: &'static str, text: &str) -> Result<(), ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::new(part, "is empty"));
    }
    Ok(())
}

/// SASL puts a zero byte between a user and a password.
fn no_nul(part: &'static str, text: &str) -> Result<(), ConfigError> {
    if text.contains('\0') {
        let problem = "has a zero byte in it, which SASL cannot carry";
        return Err(ConfigError::new(part, problem));
    }
    Ok(())
}

fn no_control(part: &'static str, text: &str) -> Result<(), ConfigError> {
    no_nul(part, text)?;
    if text.contains(char::is_control) {
        let problem = "has a control character in it: a line break?";
        return Err(ConfigError::new(part, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_credentials_are_rejected_by_the_invalid_part() {
        for (credentials, part, problem) in [
            (Credentials::password("", "x"), "user", "is empty"),
            (Credentials::password("a\0b", "x"), "user", "zero byte"),
            (
                Credentials::password("a\n", "x"),
                "user",
                "control character",
            ),
            (Credentials::password("a:b", "x"), "user", "colon"),
            (Credentials::password("a", ""), "password", "is empty"),
            (
                Credentials::password("a", "hun\0ter"),
                "password",
                "zero byte",
            ),
            (Credentials::token(""), "token", "is empty"),
            (Credentials::token("hunter\n"), "token", "line break"),
            (Credentials::token("hun\x01ter"), "token", "characters"),
            (
                Credentials::certificate("", "k"),
                "client certificate",
                "is empty",
            ),
            (
                Credentials::certificate("c", ""),
                "key of the client certificate",
                "is empty",
            ),
        ] {
            let error = credentials.validate().unwrap_err();
            assert_eq!(error.part(), part);
            assert!(error.problem().contains(problem), "{error}");
            assert!(!error.to_string().contains("hun"), "{error}");
        }
    }

    #[test]
    fn credentials_that_a_server_may_have_are_accepted() {
        for credentials in [
            Credentials::password("app", "secret"),
            Credentials::password("me@example.com", "a:b, c=d \u{e9}\n"),
            Credentials::token("eyJhbGciOiJub25lIn0.e30."),
            Credentials::certificate("chain", "key"),
        ] {
            assert_eq!(credentials.validate(), Ok(()), "{credentials:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        for credentials in [
            Credentials::password("app", "hunter2"),
            Credentials::token("hunter2"),
            Credentials::certificate("hunter2", "hunter2"),
        ] {
            assert!(!format!("{credentials:?}").contains("hunter2"));
            assert!(!format!("{credentials:#?}").contains("hunter2"));
        }
    }

    #[test]
    fn http_gets_the_same_credentials() {
        let header = |credentials: Credentials| credentials.authorization().map(|h| h.to_string());
        // The example of RFC 7617, section 2.
        let basic = header(Credentials::password("Aladdin", "open sesame"));
        assert_eq!(basic.as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        let bearer = header(Credentials::token("tok"));
        assert_eq!(bearer.as_deref(), Some("Bearer tok"));
        assert_eq!(header(Credentials::certificate("c", "k")), None);
    }
}
