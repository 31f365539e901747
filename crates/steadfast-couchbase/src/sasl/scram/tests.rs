use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// The example of RFC 5802, section 5, in its three messages of the client and
/// two of the server.
const NONCE: &str = "fyko+d2lbbFgONRv9qkxdawL";
const CHALLENGE: &str = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
const PROOF: &str =
    "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
const VERIFIER: &str = "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=";

/// Shared, so that the thousand exchanges of a property derive keys once.
static PENCIL: LazyLock<Credentials> = LazyLock::new(|| Credentials::password("user", "pencil"));

fn begun(hash: Hash, nonce: &str) -> Scram {
    Scram::begin_with(hash, &PENCIL, nonce.to_owned())
        .unwrap()
        .0
}

fn proved() -> Scram {
    let mut scram = begun(Hash::Sha1, NONCE);
    scram.answer(CHALLENGE.as_bytes()).unwrap();
    scram
}

#[test]
fn the_exchange_is_that_of_rfc_5802() {
    let credentials = Credentials::password("user", "pencil");
    let (mut scram, first) = Scram::begin_with(Hash::Sha1, &credentials, NONCE.to_owned()).unwrap();
    assert_eq!(first, b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL");
    let proof = scram.answer(CHALLENGE.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(proof).unwrap(), PROOF);
    scram.finish(VERIFIER.as_bytes()).unwrap();
}

#[test]
fn the_exchange_is_that_of_rfc_7677() {
    let mut scram = begun(Hash::Sha256, "rOprNGfwEbeRWgbNEkqO");
    let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    let proof = scram.answer(challenge.as_bytes()).unwrap();
    assert_eq!(
        String::from_utf8(proof).unwrap(),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    scram
        .finish(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
        .unwrap();
}

#[test]
fn names_are_escaped() {
    let credentials = Credentials::password("a,b=c", "x");
    let (_, first) = Scram::begin_with(Hash::Sha1, &credentials, "N".to_owned()).unwrap();
    assert_eq!(first, b"n,,n=a=2Cb=3Dc,r=N");
}

#[test]
fn nonces_differ() {
    let credentials = Credentials::password("user", "pencil");
    let first = || Scram::begin(Hash::Sha1, &credentials).unwrap().1;
    assert_ne!(first(), first());
}

#[test]
fn a_challenge_that_no_honest_server_sends_is_refused() {
    for (challenge, problem) in [
        ("", "does not begin with a nonce"),
        ("m=x,r=NS,s=c2FsdA==,i=4096", "does not begin with a nonce"),
        ("r=NS", "has no salt"),
        ("r=NS,s=c2FsdA==", "has no iteration count"),
        ("r=NS,s=c2FsdA==,i=many", "not a number"),
        ("r=NS,s=c2FsdA==,i=-1", "not a number"),
        ("r=NS,s=c2FsdA==,i=99999999999", "not a number"),
        ("r=NS,s=c2FsdA==,i=1", "asks for 1 iterations"),
        (
            "r=NS,s=c2FsdA==,i=4000000000",
            "asks for 4000000000 iterations",
        ),
        ("r=NS,s=???,i=4096", "salt is not Base64"),
        ("r=NS,s=,i=4096", "salt is empty"),
        ("r=N,s=c2FsdA==,i=4096", "did not extend the nonce"),
        ("r=XN,s=c2FsdA==,i=4096", "did not extend the nonce"),
        ("e=other-error", "broke off"),
    ] {
        let error = begun(Hash::Sha1, "N")
            .answer(challenge.as_bytes())
            .unwrap_err();
        assert!(error.to_string().contains(problem), "{challenge}: {error}");
    }
    let long = format!("r=N{},s=c2FsdA==,i=4096", "x".repeat(MOST_BYTES));
    assert!(begun(Hash::Sha1, "N").answer(long.as_bytes()).is_err());
    assert!(begun(Hash::Sha1, "N").answer(b"\xff").is_err());
}

#[test]
fn a_server_that_does_not_know_the_password_is_rejected() {
    let wrong = format!("v={}", STANDARD.encode([0; 20]));
    for (last, problem) in [
        (wrong.as_str(), "not who it claims to be"),
        ("v=", "not who it claims to be"),
        ("v=???", "not Base64"),
        ("", "has no verifier"),
        ("e=invalid-proof", "broke off"),
    ] {
        let error = proved().finish(last.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(problem), "{last}: {error}");
    }
    // One that says "welcome" without having been shown a proof.
    let error = begun(Hash::Sha1, NONCE)
        .finish(VERIFIER.as_bytes())
        .unwrap_err();
    assert!(matches!(error, SaslError::Signature));
}

#[test]
fn a_second_challenge_is_out_of_turn() {
    let error = proved().answer(CHALLENGE.as_bytes()).unwrap_err();
    assert!(matches!(error, SaslError::OutOfTurn(_)));
}

#[test]
fn the_salted_password_is_derived_once_for_all_connections_with_the_credentials() {
    let credentials = Credentials::password("user", "pencil");
    for _ in 0..3 {
        let (mut scram, _) =
            Scram::begin_with(Hash::Sha1, &credentials.clone(), NONCE.to_owned()).unwrap();
        let proof = scram.answer(CHALLENGE.as_bytes()).unwrap();
        assert_eq!(proof, PROOF.as_bytes());
    }
    let password = password_of(&credentials, Hash::Sha1).unwrap();
    let salt = STANDARD.decode("QSXCR+Q6sek8bf92").unwrap();
    // A password that is wrong is not looked at: the answer is remembered.
    let again = password.salted.get(Hash::Sha1, b"wrong", &salt, 4096);
    let fresh = Hash::Sha1.salted(b"pencil", &salt, 4096);
    assert_eq!(again.get(), Some(&fresh));
}

proptest! {
    #[test]
    fn no_message_of_a_server_makes_it_panic(
        first in proptest::collection::vec(any::<u8>(), 0..80),
        shaped in "(r=N|e=|m=|,)?[ -~]{0,12}(,s=[A-Za-z0-9+/=]{0,9})?(,i=[0-9]{0,3})?(,.{0,5})?",
        last in "(v=|e=)?\\PC{0,40}",
    ) {
        let _ = begun(Hash::Sha1, "N").answer(&first);
        let _ = begun(Hash::Sha1, "N").answer(shaped.as_bytes());
        prop_assert!(proved().finish(last.as_bytes()).is_err());
    }
}
