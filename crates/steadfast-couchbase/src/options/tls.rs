//! Options of TLS.

use std::path::PathBuf;

use super::settings::settings;

settings! {
    /// Whom to trust, where the connection string asks for TLS.
    ///
    /// Without more, the authorities that the machine trusts. As soon as one is
    /// named here, only those named here: who runs an authority of their own
    /// seldom wants all the others to be able to speak for the cluster.
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
        /// Trusts whoever answers, whatever certificate it shows. Off; anybody on
        /// the way can then read the password. For a test on one's own machine.
        plain dangerous_skip_verification: bool = false;
    }
}

/// Where certificates of authorities are, as PEM.
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
