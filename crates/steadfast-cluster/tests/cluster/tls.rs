//! The key-value protocol under TLS.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{BUCKET, VBUCKETS, builder};
use bytes::BytesMut;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use steadfast_cluster::TestCluster;
use steadfast_wire::{Decoded, FrameBuilder, FrameDecoder, Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

async fn connect(cluster: &TestCluster, ca_pem: &str) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection_string = cluster.tls_connection_string().unwrap();
    let address = connection_string.strip_prefix("couchbases://").unwrap();
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_can_connect() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let mut stream = connect(&cluster, cluster.ca_pem().unwrap()).await.unwrap();
    let mut request = BytesMut::new();
    FrameBuilder::request(Opcode::SaslAuth)
        .key("PLAIN")
        .value("\0app\0secret")
        .encode(&mut request)
        .unwrap();
    stream.write_all(&request).await.unwrap();
    let mut header = [0; 24];
    stream.read_exact(&mut header).await.unwrap();
    assert_eq!(header[6..8], Status::Success.code().to_be_bytes());
}

/// Returns the certificate that the node showed.
fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    let (_, session) = stream.get_ref();
    session.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test]
async fn a_rotated_certificate_is_shown_to_new_connections_and_old_ones_are_cut() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let ca_pem = cluster.ca_pem().unwrap().to_owned();
    let mut old = connect(&cluster, &ca_pem).await.unwrap();
    cluster.rotate_certificate().unwrap();
    assert_eq!(cluster.ca_pem(), Some(&*ca_pem));
    let ended = |read: std::io::Result<usize>| read.map_or(true, |bytes| bytes == 0);
    assert!(ended(old.read(&mut [0]).await), "the old connection is cut");
    let new = connect(&cluster, &ca_pem).await.unwrap();
    assert_ne!(shown(&new), shown(&old));
    let again = connect(&cluster, &ca_pem).await.unwrap();
    assert_eq!(shown(&again), shown(&new));
    // A client may be done with its handshake before the node is.
    while cluster.certificate_connections() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(cluster.certificate_connections(), 2);
    let plain = builder(1, 0).start().await.unwrap();
    assert!(plain.rotate_certificate().is_err());
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_cannot_connect() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let other = builder(1, 0).tls(true).start().await.unwrap();
    let error = connect(&cluster, other.ca_pem().unwrap())
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// The first bytes of a handshake, and no more.
async fn half_open(cluster: &TestCluster, bytes: &[u8]) -> TcpStream {
    let connection_string = cluster.tls_connection_string().unwrap();
    let address = connection_string.strip_prefix("couchbases://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn unfinished_handshakes_do_not_block_other_clients() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let mut half = Vec::new();
    for number in 0..200 {
        // A record that promises a long hello, as far as it goes; every other one says nothing.
        let record = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc];
        half.push(half_open(&cluster, &record[..number % 2 * number.min(9)]).await);
    }
    let plain = half_open(&cluster, &[0x80; 24])
        .await
        .read_to_end(&mut Vec::new())
        .await;
    assert!(
        plain.is_ok_and(|alert| alert > 0),
        "no frame is a handshake"
    );
    connect(&cluster, cluster.ca_pem().unwrap()).await.unwrap();
}

/// Time is virtual: it advances when all tasks wait.
#[tokio::test(start_paused = true)]
async fn the_node_closes_an_unfinished_handshake() {
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let began = tokio::time::Instant::now();
    let mut silent = half_open(&cluster, &[]).await;
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0);
    let took = began.elapsed();
    assert!((30..40).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test]
async fn a_cluster_without_tls_has_none() {
    let cluster = builder(1, 0).start().await.unwrap();
    assert_eq!(cluster.tls_connection_string(), None);
    assert_eq!(cluster.ca_pem(), None);
}

/// A client that asks for much more than the sockets hold before it reads: the node keeps the
/// rest, in its buffer and in that of TLS, and all of it arrives.
#[tokio::test]
async fn a_client_that_reads_late_gets_every_response() {
    const REQUESTS: u32 = 200;
    let cluster = builder(1, 0).tls(true).start().await.unwrap();
    let mut stream = connect(&cluster, cluster.ca_pem().unwrap()).await.unwrap();
    let mut requests = BytesMut::new();
    let login = FrameBuilder::request(Opcode::SaslAuth).key("PLAIN");
    login.value("\0app\0secret").encode(&mut requests).unwrap();
    let select = FrameBuilder::request(Opcode::SelectBucket).key(BUCKET);
    select.encode(&mut requests).unwrap();
    let vbucket = steadfast_wire::vbucket::of_key(b"large", VBUCKETS);
    let large = vec![b'x'; 100_000];
    FrameBuilder::request(Opcode::Set)
        .vbucket(vbucket)
        .extras([0; 8])
        .key("large")
        .value(&large[..])
        .encode(&mut requests)
        .unwrap();
    for number in 0..REQUESTS {
        let get = FrameBuilder::request(Opcode::Get).vbucket(vbucket);
        let get = get.key("large").opaque(number);
        get.encode(&mut requests).unwrap();
    }
    stream.write_all(&requests).await.unwrap();
    stream.flush().await.unwrap();
    let (mut received, mut answers) = (BytesMut::new(), Vec::new());
    let all = async {
        while answers.len() < REQUESTS as usize {
            match FrameDecoder::from_server().decode(&mut received).unwrap() {
                Decoded::Frame(frame) if frame.opcode() == Opcode::Get => {
                    assert_eq!(frame.value(), large);
                    answers.push(frame.opaque());
                    // Meanwhile the node fills the sockets again.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Decoded::Frame(frame) => assert!(frame.is_success(), "{frame:?}"),
                Decoded::NeedMore(_) => {
                    assert_ne!(stream.read_buf(&mut received).await.unwrap(), 0);
                }
            }
        }
    };
    let received = tokio::time::timeout(Duration::from_secs(30), all).await;
    received.expect("the node holds responses back");
    assert_eq!(answers, (0..REQUESTS).collect::<Vec<_>>());
}
