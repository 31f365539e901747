//! Checks the exchange with the messages that a fuzzer makes up.

use super::{Credentials, Hash, Scram};

const NONCE: &str = "fuzz";

/// Answers the first message and checks the last. A server that does not know the password
/// must never be believed.
pub fn scram(first: &[u8], last: &[u8]) {
    // Many rounds are allowed, and are slow.
    let few_rounds = |text: &str| text.len() <= 6 && text < "i=2000";
    let text = String::from_utf8_lossy(first);
    if !text
        .split(',')
        .filter(|part| part.starts_with("i="))
        .all(few_rounds)
    {
        return;
    }
    let credentials = Credentials::password("app", "the fuzzer does not know this");
    let (mut scram, _) = Scram::begin_with(Hash::Sha256, &credentials, NONCE.to_owned())
        .expect("a password suits SCRAM");
    if let Ok(proof) = scram.answer(first) {
        assert!(
            proof.starts_with(b"c=biws,r=fuzz"),
            "the nonce is not repeated"
        );
        scram.finish(last).expect_err("the server proved nothing");
    }
}
