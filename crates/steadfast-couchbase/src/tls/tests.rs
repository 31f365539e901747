use std::io;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `db.test` and its key, both PEM.
fn issue(authority: &CertifiedIssuer<'_, KeyPair>) -> (String, String) {
    let mut params = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// A server whose certificate is of one authority, and that wants clients to
/// show one of another, if any.
fn server(own: &CertifiedIssuer<'_, KeyPair>, clients: Option<&str>) -> TlsAcceptor {
    let (chain, key) = issue(own);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            add(&mut roots, "test".into(), pem.as_bytes()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = certificates("test", chain.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
}

/// Shakes hands and reads the server's greeting.
async fn greet(
    acceptor: TlsAcceptor,
    options: &TlsOptions,
    credentials: &Credentials,
) -> io::Result<String> {
    let config = client_config(options, credentials).unwrap();
    let (client, server) = tokio::io::duplex(1 << 16);
    let server = async move {
        if let Ok(mut stream) = acceptor.accept(server).await {
            stream.write_all(b"hello").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    };
    let client = async move {
        let name = server_name("db.test.").unwrap();
        let mut stream = TlsConnector::from(config).connect(name, client).await?;
        let mut greeting = String::new();
        stream.read_to_string(&mut greeting).await?;
        Ok(greeting)
    };
    tokio::join!(client, server).0
}

fn password() -> Credentials {
    Credentials::password("app", "secret")
}

#[tokio::test]
async fn a_server_of_a_trusted_authority_is_accepted() {
    let authority = authority();
    let options = TlsOptions::new().trust_pem(authority.pem());
    let greeting = greet(server(&authority, None), &options, &password()).await;
    assert_eq!(greeting.unwrap(), "hello");
}

#[tokio::test]
async fn a_server_of_another_authority_is_a_tls_failure_unless_all_are_trusted() {
    let options = TlsOptions::new().trust_pem(authority().pem());
    let error = greet(server(&authority(), None), &options, &password()).await;
    let error = error.unwrap_err();
    assert!(is_tls_failure(&error), "{error:?}");

    let options = options.dangerous_skip_verification(true);
    let greeting = greet(server(&authority(), None), &options, &password()).await;
    assert_eq!(greeting.unwrap(), "hello");
}

#[tokio::test]
async fn a_client_certificate_is_accepted_and_a_missing_or_wrong_one_is_a_tls_failure() {
    let (servers, clients) = (authority(), authority());
    let options = TlsOptions::new().trust_pem(servers.pem());
    let greet = async |credentials| {
        let acceptor = server(&servers, Some(&clients.pem()));
        greet(acceptor, &options, &credentials).await
    };
    let (chain, key) = issue(&clients);
    assert_eq!(
        greet(Credentials::certificate(chain, key)).await.unwrap(),
        "hello"
    );

    let (chain, key) = issue(&servers);
    for credentials in [Credentials::certificate(chain, key), password()] {
        let error = greet(credentials).await.unwrap_err();
        assert!(is_tls_failure(&error), "{error:?}");
    }
}

/// What a client makes of a peer that does this.
async fn meet<Peer: Future<Output = ()>>(peer: impl FnOnce(DuplexStream) -> Peer) -> io::Error {
    let options = TlsOptions::new().trust_pem(authority().pem());
    let config = client_config(&options, &password()).unwrap();
    let (client, server) = tokio::io::duplex(1 << 16);
    let connecting = TlsConnector::from(config).connect(server_name("db").unwrap(), client);
    tokio::join!(connecting, peer(server)).0.unwrap_err()
}

#[tokio::test]
async fn non_tls_bytes_are_a_tls_failure_and_a_closed_socket_is_not() {
    // The header of a key-value response: somebody forgot that the port has no TLS.
    let garbage = meet(async |mut server| {
        let response = [
            0x81, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        server.write_all(&response).await.unwrap();
        server.flush().await.unwrap();
    });
    let garbage = garbage.await;
    assert!(is_tls_failure(&garbage), "{garbage:?}");

    let hung_up = meet(async |server| drop(server)).await;
    assert!(!is_tls_failure(&hung_up), "{hung_up:?}");
}

#[test]
fn a_tls_failure_is_found_under_whatever_it_is_wrapped_in() {
    let tls = || io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
    assert!(is_tls_failure(&tls()));
    assert!(is_tls_failure(&io::Error::other(tls())));
    assert!(is_tls_failure(&io::Error::other(io::Error::other(tls()))));
    for other in [
        io::ErrorKind::ConnectionReset.into(),
        io::ErrorKind::UnexpectedEof.into(),
        io::Error::other("tls, in a way"),
        io::Error::other(io::Error::from(io::ErrorKind::BrokenPipe)),
    ] {
        assert!(!is_tls_failure(&other), "{other:?}");
    }
}

#[test]
fn an_invalid_tls_option_is_named() {
    let (chain, key) = issue(&authority());
    let trusting = |pem: &str| TlsOptions::new().trust_pem(pem);
    let trusted = || trusting(&authority().pem());
    let file = |path| TlsOptions::new().trust_file(path);
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let unended = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    let other_key = KeyPair::generate().unwrap().serialize_pem();
    let certificate = |chain: &str, key: &str| Credentials::certificate(chain, key);
    for (options, credentials, part, problem) in [
        (
            file("/no/such.pem"),
            password(),
            "trusted certificate file /no/such.pem",
            "cannot be read",
        ),
        (
            trusting(""),
            password(),
            "trusted certificate",
            "holds no certificate",
        ),
        (
            trusting(&key),
            password(),
            "trusted certificate",
            "holds no certificate",
        ),
        (
            trusting(broken),
            password(),
            "trusted certificate",
            "cannot be used",
        ),
        (
            trusting(unended),
            password(),
            "trusted certificate",
            "is not PEM",
        ),
        (
            trusted(),
            certificate("x", &key),
            "client certificate",
            "holds no certificate",
        ),
        (
            trusted(),
            certificate(&chain, "hunter2"),
            "key of the client certificate",
            "is not a private key",
        ),
        (
            trusted(),
            certificate(&chain, &other_key),
            "client certificate",
            "cannot be used",
        ),
    ] {
        let error = client_config(&options, &credentials).unwrap_err();
        assert_eq!(error.part(), part, "{error}");
        assert!(error.problem().contains(problem), "{error}");
        assert!(!error.to_string().contains("hunter2"));
        // The mistake is reported without verification too.
        let careless = options.dangerous_skip_verification(true);
        assert!(client_config(&careless, &credentials).is_err());
    }
    assert!(server_name("a b").is_err());
    assert!(server_name("10.0.0.1").is_ok() && server_name("::1").is_ok());
}

fn trusted_roots(options: &TlsOptions) -> RootCertStore {
    authorities(options).unwrap()
}

#[test]
fn the_root_of_capella_is_the_published_one_and_trusted_unless_others_are_named() {
    use sha2::{Digest, Sha256};

    let [root] = &certificates("test", CAPELLA_ROOT.as_bytes()).unwrap()[..] else {
        panic!("one certificate is bundled");
    };
    let digest: String = Sha256::digest(root)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        digest,
        "d0937e9c934b2dab94ed7a4b91c548e79eecca992b27ab6d2620807e68657c0e"
    );
    let mut expected = RootCertStore::empty();
    expected.add(root.clone()).unwrap();
    let capella = &expected.roots[0].subject_public_key_info;
    let trusts = |options: &TlsOptions| {
        let roots = trusted_roots(options).roots;
        roots
            .iter()
            .any(|root| root.subject_public_key_info == *capella)
    };
    assert!(trusts(&TlsOptions::new()));
    let named = TlsOptions::new().trust_pem(authority().pem());
    assert!(!trusts(&named));
    assert_eq!(trusted_roots(&named).len(), 1);
    assert!(!trusts(&named.system_authorities(true)));
}

/// A configuration that trusts this authority.
fn own_config(authority: &CertifiedIssuer<'_, KeyPair>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    add(&mut roots, "test".into(), authority.pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[tokio::test]
async fn a_rustls_configuration_of_the_user_decides_whom_to_trust() {
    let (own, others) = (authority(), authority());
    let options = TlsOptions::new().rustls_config(own_config(&own));
    let greeted = greet(server(&own, None), &options, &password()).await;
    assert_eq!(greeted.unwrap(), "hello");
    let refused = greet(server(&others, None), &options, &password()).await;
    assert!(is_tls_failure(&refused.unwrap_err()));
    // The client certificate of the credentials is shown with it.
    let (chain, key) = issue(&others);
    let certificate = Credentials::certificate(chain, key);
    let wants_one = || server(&own, Some(&others.pem()));
    let greeted = greet(wants_one(), &options, &certificate).await;
    assert_eq!(greeted.unwrap(), "hello");
    assert!(greet(wants_one(), &options, &password()).await.is_err());
}

#[test]
fn a_rustls_configuration_of_the_user_excludes_what_contradicts_it() {
    use crate::options::ClusterOptions;

    let own = own_config(&authority());
    let with = |tls: TlsOptions| ClusterOptions::new().tls(tls).validate();
    let options = || TlsOptions::new().rustls_config(own.clone());
    assert_eq!(with(options()), Ok(()));
    let mut alpn = own.clone();
    alpn.alpn_protocols = vec![b"http/1.1".to_vec()];
    assert_eq!(with(TlsOptions::new().rustls_config(alpn.clone())), Ok(()));
    alpn.alpn_protocols.push(b"h2".to_vec());
    for wrong in [
        options().trust_file("/ca.pem"),
        options().system_authorities(true),
        options().dangerous_skip_verification(true),
        TlsOptions::new().rustls_config(alpn),
    ] {
        let error = with(wrong).unwrap_err();
        assert_eq!(error.part(), "tls.rustls_config", "{error}");
    }
}
