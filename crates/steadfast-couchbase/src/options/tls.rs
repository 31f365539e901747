//! Options of TLS.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;

use super::settings::settings;
use crate::config_error::ConfigError;

settings! {
    /// The trusted authorities, where the connection string asks for TLS.
    ///
    /// By default the client trusts the machine's authorities, and the root of
    /// Couchbase Capella. If any authorities are named here, it trusts only those.
    ///
    /// ```
    /// use steadfast_couchbase::options::TlsOptions;
    ///
    /// let options = TlsOptions::new().trust_file("/etc/couchbase/ca.pem");
    /// # let _ = options;
    /// ```
    pub struct TlsOptions {
        /// The authorities that are trusted.
        plain authorities: Vec<Authority> = Vec::new();
        /// Trusts the machine's authorities also when others are named. Off.
        plain system_authorities: bool = false;
        /// Accepts any certificate. Off; an attacker in the network can then read the
        /// password. For tests on one machine only.
        plain dangerous_skip_verification: bool = false;
        /// A rustls configuration to use instead of all the above. `None`.
        own rustls_config: Option<Arc<ClientConfig>> = None;
    }
}

/// Certificates of authorities, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// In this file.
    File(PathBuf),
    /// Here.
    Pem(String),
}

impl TlsOptions {
    /// Trusts the authorities in a PEM file. It is read when the cluster is
    /// connected to.
    #[must_use]
    pub fn trust_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.authorities.push(Authority::File(path.into()));
        self
    }

    /// Trusts the authorities in a PEM text.
    #[must_use]
    pub fn trust_pem(mut self, pem: impl Into<String>) -> Self {
        self.authorities.push(Authority::Pem(pem.into()));
        self
    }

    /// Uses this rustls configuration: another crypto provider, a verifier of one's
    /// own, keys in hardware. It decides alone whom to trust. The crate re-exports
    /// [`rustls`](crate::rustls) in the matching version.
    ///
    /// [`Credentials::certificate`](crate::Credentials::certificate) still sets the
    /// client certificate. With other credentials, the configuration's own is shown.
    #[must_use]
    pub fn rustls_config(mut self, config: impl Into<Arc<ClientConfig>>) -> Self {
        self.rustls_config = Some(config.into());
        self
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let Some(config) = &self.rustls_config else {
            return Ok(());
        };
        let wrong = |problem| Err(ConfigError::new("tls.rustls_config", problem));
        if !self.authorities.is_empty() || self.system_authorities {
            return wrong("decides itself whom to trust: put the authorities into it");
        }
        if self.dangerous_skip_verification {
            return wrong("decides itself whom to trust: verification cannot be skipped beside it");
        }
        // A server would choose HTTP/2, which the client does not speak.
        if config.alpn_protocols.iter().any(|name| name != b"http/1.1") {
            return wrong("offers a protocol by ALPN other than http/1.1");
        }
        Ok(())
    }
}
