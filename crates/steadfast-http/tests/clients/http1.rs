//! HTTP/1.1: connections that end at every kind of byte.

use super::integrations::{Integration, judge, judge_body};
use super::raw::{Act, Fault};

fn write(text: &str) -> Act {
    Act::Write(text.as_bytes().to_vec())
}

fn reset(text: &str) -> Act {
    Act::Reset(text.as_bytes().to_vec())
}

/// No end of a connection proves that a request which was read was not carried out.
#[tokio::test]
async fn a_cut_connection_never_proves_that_nothing_happened() {
    for (name, act) in [
        ("closed at the first byte", Act::CloseAfterReading(1)),
        ("closed in the head", Act::CloseAfterReading(20)),
        (
            "closed in a header of the request",
            Act::CloseAfterReading(40),
        ),
        ("closed without a response", write("")),
        ("reset without a response", reset("")),
        ("closed in the status line", write("HTTP/1.1 2")),
        ("reset in the status line", reset("HTTP/1.1 2")),
        ("closed in a header", write("HTTP/1.1 200 OK\r\ncontent-le")),
        ("closed after 100", write("HTTP/1.1 100 Continue\r\n\r\n")),
        (
            "closed after 103",
            write("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
        ),
        ("not HTTP", write("SSH-2.0-OpenSSH_9.6\r\n\r\n")),
    ] {
        for integration in Integration::HTTP {
            for idempotent in [true, false] {
                let fault = Fault {
                    name,
                    carried_out: true,
                    proves_nothing_happened: false,
                    act: act.clone(),
                };
                judge(integration, false, idempotent, fault).await;
            }
        }
    }
}

#[tokio::test]
async fn a_status_proves_what_it_says_also_after_an_informational_one() {
    for (name, status, proves) in [
        ("throttled", "429 Too Many Requests", true),
        ("too early", "425 Too Early", true),
        ("a gateway", "502 Bad Gateway", false),
        ("unavailable", "503 Service Unavailable", false),
        ("a gateway's timeout", "504 Gateway Timeout", false),
        (
            "without a name",
            "520 Web Server Returned an Unknown Error",
            false,
        ),
    ] {
        for before in [
            "",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\n\r\n",
        ] {
            for integration in Integration::HTTP {
                for idempotent in [true, false] {
                    let text = format!("{before}HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nno");
                    let fault = Fault {
                        name,
                        // A gateway may have forwarded the request.
                        carried_out: !proves,
                        proves_nothing_happened: proves,
                        act: Act::KeepAlive(text.into_bytes()),
                    };
                    judge(integration, false, idempotent, fault).await;
                }
            }
        }
    }
}

/// A body in one piece may be sent again whatever its size, if the request may be.
#[tokio::test]
async fn a_connection_cut_in_a_large_body_proves_nothing() {
    let body = vec![b'x'; 1 << 20];
    for bytes in [1_000, 70_000, 900_000] {
        for integration in Integration::HTTP {
            for idempotent in [true, false] {
                let fault = Fault {
                    name: "closed in the body",
                    carried_out: true,
                    proves_nothing_happened: false,
                    act: Act::CloseAfterReading(bytes),
                };
                judge_body(integration, false, idempotent, fault, &body).await;
            }
        }
    }
}
