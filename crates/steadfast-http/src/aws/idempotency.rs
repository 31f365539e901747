//! Decides whether an operation may be sent twice.
//!
//! The SDK does not expose which operations its models call idempotent. It exposes three
//! facts: the HTTP method, the name, and whether it fills in an idempotency token.

use aws_smithy_runtime_api::client::interceptors::Intercept as _;
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use super::operation::AwsOperation;

/// The SDK's interceptor that fills in a token by which the service recognizes a
/// repeated request. Operations whose model has no such token do not have it.
const TOKEN: &str = "IdempotencyTokenInterceptor";

/// Operations whose method and name suggest the wrong result.
const LISTED: &[(&str, &str, bool)] = &[
    // A task is handed out once. The name says `Get`.
    ("SFN", "GetActivityTask", false),
    // It sends a message to the user.
    (
        "Cognito Identity Provider",
        "GetUserAttributeVerificationCode",
        false,
    ),
    // A message whose response was lost comes back after its visibility timeout, and
    // the caller's loop would ask again anyway.
    ("SQS", "ReceiveMessage", true),
    ("SQS", "ChangeMessageVisibility", true),
    ("SQS", "ChangeMessageVisibilityBatch", true),
    // They return the existing queue, topic or subscription.
    ("SQS", "CreateQueue", true),
    ("SNS", "CreateTopic", true),
    ("SNS", "Subscribe", true),
    // They write whole items.
    ("DynamoDB", "PutItem", true),
    ("DynamoDB", "BatchWriteItem", true),
    ("DynamoDB", "TransactGetItems", true),
    ("S3", "SelectObjectContent", true),
];

/// Operations that a client repeats in a loop, as AWS publishes them. The SDK marks
/// them too, in its own clients.
const LONG_POLLS: &[(&str, &str)] = &[
    ("SFN", "GetActivityTask"),
    ("SQS", "ReceiveMessage"),
    ("SWF", "PollForActivityTask"),
    ("SWF", "PollForDecisionTask"),
];

/// First words of the names of operations that only read.
const READS: [&str; 9] = [
    "BatchGet", "Describe", "Get", "Head", "List", "Lookup", "Query", "Scan", "Search",
];

/// First words of the names of operations that set a state, whatever it was before.
const SETS: [&str; 4] = ["Delete", "Set", "Tag", "Untag"];

/// Returns whether sending a request twice has the same effect as sending it once.
/// Unknown operations are not idempotent.
pub(super) fn is_idempotent(
    operation: &AwsOperation,
    request: &HttpRequest,
    has_token: impl FnOnce() -> bool,
) -> bool {
    let listed = LISTED
        .iter()
        .find(|(service, name, _)| (*service, *name) == (operation.service, operation.name));
    if let Some((_, _, idempotent)) = listed {
        return *idempotent && !is_conditional(operation, request);
    }
    let by_method_and_name = match request.method() {
        "GET" | "HEAD" | "OPTIONS" | "TRACE" => true,
        "PUT" | "DELETE" => !is_conditional(operation, request),
        // All operations of many services are POST requests.
        "POST" if begins_with(operation.name, &READS) => true,
        "POST" if begins_with(operation.name, &SETS) => !is_conditional(operation, request),
        _ => false,
    };
    by_method_and_name || has_token()
}

/// Returns whether the SDK fills in an idempotency token for this operation.
pub(super) fn has_token(components: &RuntimeComponents) -> bool {
    components.interceptors().any(|each| each.name() == TOKEN)
}

/// Returns whether a write has a condition. If its response is lost, a second one
/// fails because of the first, and the caller would conclude that it was not applied.
fn is_conditional(operation: &AwsOperation, request: &HttpRequest) -> bool {
    let conditions = [
        "if-match",
        "if-none-match",
        "if-unmodified-since",
        // Appends to an object of S3 if it has this size.
        "write-offset",
    ];
    let mut names = request.headers().iter().map(|(name, _)| name);
    names.any(|name| conditions.iter().any(|condition| name.contains(condition)))
        || operation.service == "DynamoDB"
            && request.body().bytes().is_none_or(|body| {
                contains(body, b"\"ConditionExpression\"") || contains(body, b"\"Expected\"")
            })
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

/// Returns whether the operation is one that clients repeat in a loop.
pub(super) fn is_long_poll(operation: &AwsOperation) -> bool {
    LONG_POLLS.contains(&(operation.service, operation.name))
}

/// Returns whether the name begins with one of the words. `Listen` does not begin with
/// `List`.
fn begins_with(name: &str, words: &[&str]) -> bool {
    words
        .iter()
        .filter_map(|word| name.strip_prefix(word))
        .any(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use aws_smithy_types::body::SdkBody;

    use super::*;

    /// The answer for an operation without an idempotency token.
    fn answer(method: &str, service: &'static str, name: &'static str) -> bool {
        let mut request = HttpRequest::new(SdkBody::from("{}"));
        request.set_method(method).unwrap();
        answer_for(request, service, name)
    }

    fn answer_for(request: HttpRequest, service: &'static str, name: &'static str) -> bool {
        is_idempotent(&AwsOperation { service, name }, &request, || false)
    }

    #[test]
    fn a_post_is_idempotent_if_its_name_reads_or_sets() {
        for name in ["GetThing", "Scan", "Query", "ListThings", "HeadThing"] {
            assert!(answer("POST", "Any", name), "{name}");
        }
        for name in ["DeleteThing", "SetThing", "TagThing", "UntagThing"] {
            assert!(answer("POST", "Any", name), "{name}");
        }
        for name in ["PutThing", "Listen", "Gettysburg", "Settle", "get", ""] {
            assert!(!answer("POST", "Any", name), "{name}");
        }
    }

    #[test]
    fn the_method_decides_where_services_use_it() {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            assert!(answer(method, "Any", "DoThing"), "{method}");
        }
        assert!(!answer("PATCH", "Any", "DoThing"));
        assert!(!answer("PATCH", "Any", "GetThing"));
    }

    #[test]
    fn the_table_precedes_the_name() {
        assert!(!answer("POST", "SFN", "GetActivityTask"));
        assert!(answer("POST", "Any", "GetActivityTask"));
        assert!(answer("POST", "SQS", "ReceiveMessage"));
        assert!(!answer("POST", "SQS", "SendMessage"));
        assert!(!answer("POST", "SWF", "PollForActivityTask"));
    }

    #[test]
    fn a_conditional_write_is_not_idempotent() {
        for (method, idempotent) in [("PUT", false), ("DELETE", false), ("GET", true)] {
            for header in [
                "if-match",
                "If-None-Match",
                "x-amz-if-match-size",
                "x-amz-write-offset-bytes",
            ] {
                let mut request = HttpRequest::new(SdkBody::empty());
                request.set_method(method).unwrap();
                request.headers_mut().insert(header, "1");
                assert_eq!(answer_for(request, "S3", "Any"), idempotent, "{header}");
            }
        }
        for (body, idempotent) in [
            (r#"{"Item":{}}"#, true),
            (r#"{"Item":{},"ConditionExpression":"a"}"#, false),
            (r#"{"Item":{},"Expected":{}}"#, false),
        ] {
            for name in ["PutItem", "DeleteItem"] {
                let mut request = HttpRequest::new(SdkBody::from(body));
                request.set_method("POST").unwrap();
                assert_eq!(answer_for(request, "DynamoDB", name), idempotent, "{body}");
            }
        }
    }
}
