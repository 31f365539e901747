//! Logging in with a password prompt and with a client certificate.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Output, command, run};
#[cfg(unix)]
use crate::support::{is_shown, read_to_end, read_until};

#[test]
fn without_a_terminal_a_missing_password_is_an_error_with_the_ways_to_give_it() {
    let get = [
        "get",
        "couchbase://127.0.0.1:1/travel",
        "k",
        "--user",
        "app",
    ];
    let output = run(command(&get));
    assert_eq!(output.status, 2, "{output:?}");
    for way in ["--password-file", "STEADFAST_PASSWORD", "terminal"] {
        assert!(output.stderr.contains(way), "{output:?}");
    }
    let output = run(command(&get[..3]));
    assert_eq!(output.status, 2, "{output:?}");
    for way in ["--user", "STEADFAST_USER", "--client-certificate"] {
        assert!(output.stderr.contains(way), "{output:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_terminal_gets_a_hidden_password_prompt() {
    use std::io::Write;
    use std::time::Instant;

    let served = crate::support::Served::start(|builder| builder);
    let travel = served.address("travel");
    assert!(served.run(&["upsert", &travel, "k", "\"found\""]).ok());
    for (password, found) in [("secret", true), ("wr0ng", false)] {
        let (mut terminal, end) = pty_process::blocking::open().unwrap();
        let get = command(&["get", &travel, "k", "--user", "app"]);
        let get = pty_process::blocking::Command::from(get);
        let mut process = get.spawn(end).unwrap();
        let mut seen = String::new();
        read_until(&mut terminal, &mut seen, "Password of app: ");
        // The test types faster than a person: wait until the echo is off.
        let started = Instant::now();
        while is_shown(&terminal) {
            assert!(
                started.elapsed() < Duration::from_secs(30),
                "the echo is still on"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        terminal
            .write_all(format!("{password}\n").as_bytes())
            .unwrap();
        read_to_end(&mut terminal, &mut seen);
        let status = process.wait().unwrap();
        assert_eq!(status.success(), found, "{seen}");
        assert_eq!(seen.contains("\"found\""), found, "{seen}");
        assert!(!seen.contains(password), "{seen}");
    }
}

/// A server that requires client certificates. It reports the certificate and the first
/// byte of each connection.
struct TlsServer {
    address: SocketAddr,
    seen: Receiver<(Option<CertificateDer<'static>>, u8)>,
    ca: Arc<CertifiedIssuer<'static, KeyPair>>,
}

#[test]
fn a_client_certificate_replaces_the_password() {
    let directory = tempfile::tempdir().unwrap();
    let server = TlsServer::start();
    let ca = write(directory.path(), "ca.pem", &server.ca.pem());
    let (certificate, key, der) = identity(&server.ca, directory.path(), "app");
    let output = server.doctor(&ca, &certificate, &key);
    assert!(output.stdout.contains("✔ TLS"), "{output:?}");
    let (shown, first) = server.seen.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(shown, Some(der));
    // The first byte of a KV request: the session continues without SASL.
    assert_eq!(first, 0x80);
    // The server closes the connection, as one does that has no user for the certificate.
    for part in ["✘ authenticate", "maps to no user"] {
        assert!(output.stdout.contains(part), "{output:?}");
    }
    assert!(!output.stdout.contains("close_notify"), "{output:?}");

    // A key that does not belong to the certificate is rejected at once.
    let (_, other, _) = identity(&server.ca, directory.path(), "other");
    let output = server.doctor(&ca, &certificate, &other);
    assert_eq!(output.status, 2, "{output:?}");
    let output = server.doctor(&ca, Path::new("/no/such/file"), &key);
    assert_eq!(output.status, 2, "{output:?}");
    assert!(output.stderr.contains("/no/such/file"), "{output:?}");

    // The server rejects the certificate of another authority, and the doctor says so.
    let stranger = authority();
    let (certificate, key, _) = identity(&stranger, directory.path(), "stranger");
    let output = server.doctor(&ca, &certificate, &key);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stdout.contains("ask who issued it"), "{output:?}");

    // A password is not enough.
    let mut doctor = server.doctor_command(&ca);
    doctor.args(["--user", "app"]);
    doctor.env("STEADFAST_PASSWORD", "secret");
    let output = run(doctor);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stdout.contains("none was offered"), "{output:?}");
}

#[test]
fn a_certificate_needs_tls() {
    let get = ["get", "couchbase://127.0.0.1:1/travel", "k"];
    let shown = ["--client-certificate", "c.pem", "--client-key", "k.pem"];
    let output = run(command(&[&get[..], &shown].concat()));
    assert_eq!(output.status, 2, "{output:?}");
    assert!(output.stderr.contains("couchbases://"), "{output:?}");
}

impl TlsServer {
    fn start() -> Self {
        let ca = Arc::new(authority());
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(ca.der().clone()).unwrap();
        let roots = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            );
        let config = Arc::new(config.unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = channel();
        // Ends with the test, when the receiver is dropped.
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let session = ServerConnection::new(config.clone()).unwrap();
                let mut stream = StreamOwned::new(session, socket.unwrap());
                let mut first = [0];
                if stream.read_exact(&mut first).is_err() {
                    continue;
                }
                let shown = stream.conn.peer_certificates().and_then(<[_]>::first);
                if tell.send((shown.cloned(), first[0])).is_err() {
                    return;
                }
            }
        });
        Self { address, seen, ca }
    }

    /// Runs the doctor with this certificate. The environment names another user.
    fn doctor(&self, ca: &Path, certificate: &Path, key: &Path) -> Output {
        let mut doctor = self.doctor_command(ca);
        doctor.arg("--client-certificate").arg(certificate);
        doctor.arg("--client-key").arg(key);
        doctor.env("STEADFAST_USER", "somebody");
        run(doctor)
    }

    fn doctor_command(&self, ca: &Path) -> Command {
        let address = format!("couchbases://{}", self.address);
        let mut doctor = command(&["doctor", &address, "--timeout", "5s"]);
        doctor.arg("--ca").arg(ca);
        doctor
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a client certificate and its key, and returns both paths and the certificate.
fn identity(
    ca: &CertifiedIssuer<'static, KeyPair>,
    directory: &Path,
    name: &str,
) -> (PathBuf, PathBuf, CertificateDer<'static>) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, ca).unwrap();
    (
        write(directory, &format!("{name}.pem"), &certificate.pem()),
        write(directory, &format!("{name}.key"), &key.serialize_pem()),
        certificate.der().clone(),
    )
}

fn write(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path
}
