use steadfast_cluster::sasl::{Step, start, step};
use steadfast_cluster::users::{Rights, Users};

use super::*;

fn users() -> Users {
    let users = Users::default();
    users.put("a,b=c", "pass,word \u{e9}", Rights::all_buckets());
    users.accept_token("tok", "a,b=c");
    users
}

/// Runs an exchange against the server's half of it; whether the user came in.
fn authenticate(mechanism: Mechanism, credentials: &Credentials) -> bool {
    let (mut exchange, first) = Exchange::begin(mechanism, credentials).unwrap();
    let mut reply = start(mechanism, &first, &users());
    loop {
        reply = match reply {
            Step::Continue(challenge, server) => {
                step(server, &exchange.answer(&challenge).unwrap())
            }
            Step::Done(user, last) => {
                assert_eq!(user.name, "a,b=c");
                exchange.finish(&last).unwrap();
                return true;
            }
            Step::Refused => return false,
        }
    }
}

#[test]
fn every_mechanism_lets_the_right_credentials_in_and_no_others() {
    let right = Credentials::password("a,b=c", "pass,word \u{e9}");
    let wrong = Credentials::password("a,b=c", "password");
    for mechanism in [
        Mechanism::ScramSha512,
        Mechanism::ScramSha256,
        Mechanism::ScramSha1,
        Mechanism::Plain,
    ] {
        assert!(authenticate(mechanism, &right), "{mechanism:?}");
        assert!(!authenticate(mechanism, &wrong), "{mechanism:?}");
    }
    let mechanism = Mechanism::OauthBearer;
    assert!(authenticate(mechanism, &Credentials::token("tok")));
    assert!(!authenticate(mechanism, &Credentials::token("no")));
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
fn a_token_that_the_server_complains_of_is_given_up_and_never_a_success() {
    let credentials = Credentials::token("tok");
    let (mut exchange, _) = Exchange::begin(Mechanism::OauthBearer, &credentials).unwrap();
    let complaint = br#"{"status":"invalid_token"}"#;
    assert_eq!(exchange.answer(complaint).unwrap(), b"\x01");
    assert!(exchange.answer(complaint).is_err());
    assert!(exchange.finish(b"").is_err());
}
