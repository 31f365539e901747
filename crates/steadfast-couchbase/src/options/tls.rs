//! Options of TLS.

use std::path::PathBuf;

use super::settings::settings;

settings! {
    /// The trusted authorities, where the connection string asks for TLS.
    ///
    /// By default the client trusts the machine's authorities. If any are named here,
    /// it trusts only those.
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
}
