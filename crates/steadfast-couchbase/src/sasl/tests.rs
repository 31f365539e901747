use bytes::BytesMut;
use steadfast_cluster::users::Rights;
use steadfast_cluster::{Service, TestCluster};
use steadfast_wire::{Decoded, Frame, FrameBuilder, FrameDecoder, Opcode, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// Runs an exchange against a server; returns whether the server accepts the credentials.
async fn authenticate(
    server: &TestCluster,
    mechanism: Mechanism,
    credentials: &Credentials,
) -> bool {
    let address = server.addresses(Service::KeyValue)[0].clone();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (mut exchange, mut message) = Exchange::begin(mechanism, credentials).unwrap();
    let mut opcode = Opcode::SaslAuth;
    loop {
        let response = send(&mut stream, opcode, mechanism, &message).await;
        match response.status() {
            Status::AuthContinue => message = exchange.answer(response.value()).unwrap(),
            Status::Success => {
                exchange.finish(response.value()).unwrap();
                return true;
            }
            Status::AuthError => return false,
            other => panic!("{other}"),
        }
        opcode = Opcode::SaslStep;
    }
}

async fn send(
    stream: &mut TcpStream,
    opcode: Opcode,
    mechanism: Mechanism,
    message: &[u8],
) -> Frame {
    let mut bytes = BytesMut::new();
    let request = FrameBuilder::request(opcode).key(mechanism.name());
    request.value(message).encode(&mut bytes).unwrap();
    stream.write_all(&bytes).await.unwrap();
    bytes.clear();
    loop {
        match FrameDecoder::from_server().decode(&mut bytes).unwrap() {
            Decoded::Frame(frame) => return frame,
            Decoded::NeedMore(_) => assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0),
        }
    }
}

#[tokio::test]
async fn every_mechanism_accepts_the_right_credentials_only() {
    let builder = TestCluster::builder();
    let builder = builder.user_with_rights("a,b=c", "pass,word \u{e9}", Rights::all_buckets());
    let server = builder.start().await.unwrap();
    server.users().accept_token("tok", "a,b=c");
    let right = Credentials::password("a,b=c", "pass,word \u{e9}");
    let wrong = Credentials::password("a,b=c", "password");
    for mechanism in [
        Mechanism::ScramSha512,
        Mechanism::ScramSha256,
        Mechanism::ScramSha1,
        Mechanism::Plain,
    ] {
        assert!(authenticate(&server, mechanism, &right).await);
        assert!(!authenticate(&server, mechanism, &wrong).await);
    }
    let mechanism = Mechanism::OauthBearer;
    let (right, wrong) = (Credentials::token("tok"), Credentials::token("no"));
    assert!(authenticate(&server, mechanism, &right).await);
    assert!(!authenticate(&server, mechanism, &wrong).await);
}

#[test]
fn a_mechanism_takes_its_own_kind_of_credentials_only() {
    for mechanism in Mechanism::ALL {
        let certificate = Credentials::certificate("c", "k");
        assert!(Exchange::begin(mechanism, &certificate).is_err());
        let (token, password) = (Credentials::token("t"), Credentials::password("u", "p"));
        let takes_tokens = mechanism == Mechanism::OauthBearer;
        assert_eq!(Exchange::begin(mechanism, &token).is_ok(), takes_tokens);
        assert_eq!(Exchange::begin(mechanism, &password).is_ok(), !takes_tokens);
    }
}

#[test]
fn a_server_that_goes_on_after_plain_is_out_of_turn() {
    let credentials = Credentials::password("u", "p");
    let (mut exchange, _) = Exchange::begin(Mechanism::Plain, &credentials).unwrap();
    let error = exchange.answer(b"more").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server sent a message where PLAIN has none"
    );
}

#[test]
fn a_token_that_the_server_rejects_never_succeeds() {
    let credentials = Credentials::token("tok");
    let (mut exchange, _) = Exchange::begin(Mechanism::OauthBearer, &credentials).unwrap();
    let complaint = br#"{"status":"invalid_token"}"#;
    assert_eq!(exchange.answer(complaint).unwrap(), b"\x01");
    assert!(exchange.answer(complaint).is_err());
    assert!(exchange.finish(b"").is_err());
}
