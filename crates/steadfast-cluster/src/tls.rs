//! The cluster's own certificate authority.
//!
//! Clients trust the authority's certificate. The authority signs the certificate of
//! the nodes, for loopback names and any other requested names. Both are made anew for
//! every cluster.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// The authority, and what nodes need to accept TLS connections.
#[derive(Clone)]
pub(crate) struct Tls {
    ca_pem: Arc<str>,
    acceptor: TlsAcceptor,
}

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A name is invalid, or a key could not be generated.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate cannot be used.
    #[error("cannot use the certificate: {0}")]
    Config(#[from] rustls::Error),
}

impl Tls {
    /// A new authority, and a certificate for loopback and these names.
    pub(crate) fn new(names: &[String]) -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(Vec::<String>::new())?;
        params
            .distinguished_name
            .push(DnType::CommonName, "steadfast cluster authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let mut all_names: Vec<String> = ["127.0.0.1", "::1", "localhost"]
            .into_iter()
            .map(str::to_owned)
            .collect();
        all_names.extend(
            names
                .iter()
                .filter(|name| !all_names.contains(name))
                .cloned()
                .collect::<Vec<_>>(),
        );
        let mut params = CertificateParams::new(all_names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "steadfast cluster node");
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        Ok(Self {
            ca_pem: authority.pem().into(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// The authority's certificate, for clients to trust.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}
