//! The certificate of the scripted server, and the authority that a client must trust.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate for loopback, made for one audit.
#[derive(Clone)]
pub(crate) struct LoopbackCertificate {
    /// The certificate of the authority that signed it.
    pub(crate) ca_pem: String,
    pub(super) acceptor: TlsAcceptor,
}

impl LoopbackCertificate {
    /// Makes a certificate for a server that offers one protocol by ALPN.
    ///
    /// # Errors
    /// If no key can be generated.
    pub(crate) fn new(http2: bool) -> io::Result<Self> {
        Self::generate(http2).map_err(io::Error::other)
    }

    fn generate(http2: bool) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut params = CertificateParams::new(Vec::new())?;
        let name = "steadfast audit authority";
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;

        let names = ["127.0.0.1", "localhost"].map(str::to_owned);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &authority)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        let protocol = if http2 { "h2" } else { "http/1.1" };
        config.alpn_protocols = vec![protocol.into()];
        Ok(Self {
            ca_pem: authority.pem(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }
}

impl std::fmt::Debug for LoopbackCertificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LoopbackCertificate")
    }
}
