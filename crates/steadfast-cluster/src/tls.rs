//! The cluster's own certificate authority.
//!
//! Clients trust the authority's certificate. The authority signs the certificate of
//! the nodes, for loopback names and any other requested names. Both are made anew for
//! every cluster. The certificate of the nodes can be rotated: connections of the old one end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The authority, and what nodes need to accept TLS connections.
pub(crate) struct Tls {
    authority: CertifiedIssuer<'static, KeyPair>,
    ca_pem: String,
    names: Vec<String>,
    current: RwLock<NodeCertificate>,
}

/// A certificate of the nodes, in use until it is rotated.
#[derive(Clone)]
pub(crate) struct NodeCertificate {
    /// Accepts connections with it.
    pub(crate) acceptor: TlsAcceptor,
    /// Ends its connections.
    pub(crate) rotated: CancellationToken,
    connections: Arc<AtomicU64>,
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
        Ok(Self {
            ca_pem: authority.pem(),
            current: RwLock::new(NodeCertificate::new(&authority, &all_names)?),
            authority,
            names: all_names,
        })
    }

    /// Makes a new certificate for new connections, and ends the connections of the old one.
    pub(crate) fn rotate(&self) -> Result<(), TlsError> {
        let new = NodeCertificate::new(&self.authority, &self.names)?;
        let old = std::mem::replace(&mut *self.current.write(), new);
        old.rotated.cancel();
        Ok(())
    }

    /// The authority's certificate, for clients to trust.
    pub(crate) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The certificate for new connections.
    pub(crate) fn current(&self) -> NodeCertificate {
        self.current.read().clone()
    }
}

impl NodeCertificate {
    /// A new certificate for these names, signed by the authority.
    fn new(
        authority: &CertifiedIssuer<'static, KeyPair>,
        names: &[String],
    ) -> Result<Self, TlsError> {
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "steadfast cluster node");
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, authority)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            rotated: CancellationToken::new(),
            connections: Arc::default(),
        })
    }

    /// Counts a connection with it.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many connections were made with it.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}
