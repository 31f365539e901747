//! HTTP/2: streams and connections that end without a response.

use super::integrations::{Integration, judge};
use super::raw::{Act, Fault};

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// RFC 9113, section 8.7: the server says that it did not process the request.
#[tokio::test]
async fn a_request_that_the_server_did_not_process_is_sent_again() {
    let goaway = |code| Act::GoAway {
        code,
        includes_this: false,
    };
    for act in [
        Act::ResetStream(REFUSED_STREAM),
        goaway(NO_ERROR),
        goaway(ENHANCE_YOUR_CALM),
    ] {
        for integration in Integration::ALL {
            for idempotent in [true, false] {
                let fault = Fault {
                    name: "not processed",
                    carried_out: false,
                    proves_nothing_happened: true,
                    act: act.clone(),
                };
                judge(integration, true, idempotent, fault).await;
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_the_server_may_have_processed_is_sent_again_if_idempotent() {
    let goaway = |code| Act::GoAway {
        code,
        includes_this: true,
    };
    for act in [
        Act::ResetStream(INTERNAL_ERROR),
        Act::ResetStream(CANCEL),
        Act::ResetStream(NO_ERROR),
        goaway(NO_ERROR),
        goaway(INTERNAL_ERROR),
        Act::Close,
    ] {
        for integration in Integration::ALL {
            for idempotent in [true, false] {
                let fault = Fault {
                    name: "processed",
                    carried_out: true,
                    proves_nothing_happened: false,
                    act: act.clone(),
                };
                judge(integration, true, idempotent, fault).await;
            }
        }
    }
}

/// A server that has begun to respond has processed the request, whatever it says then.
#[tokio::test]
async fn a_refusal_after_the_head_of_a_response_proves_nothing() {
    let fault = Fault {
        name: "refused after the head",
        carried_out: true,
        proves_nothing_happened: false,
        act: Act::ResetStreamAfterHead(REFUSED_STREAM),
    };
    judge(Integration::Tonic, true, false, fault).await;
}
