//! Text of the server in errors: short, and on one line.

use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{ClusterOptions, Error};
use steadfast_wire::error_map::{Attributes, ErrorDefinition};
use steadfast_wire::{Opcode, Status};

use crate::fixture::{BUCKET, LONG, Setup, app, connect, server};

/// Longer than any error, with line breaks and escapes.
fn hostile(len: usize) -> String {
    format!("first\nERROR forged\r\n\u{1b}[2J{}", "x".repeat(len))
}

fn assert_tame(error: &Error, door: &str) {
    let line = error.to_string();
    let whole = format!("{error:#}");
    assert!(
        whole.contains("first"),
        "{door}: it was not there at all: {whole}"
    );
    let json = error.to_json().to_string();
    for shown in [
        line.clone(),
        format!("{error:#}"),
        format!("{error:?}"),
        json,
    ] {
        assert!(shown.len() < 8192, "{door}: {} bytes", shown.len());
        assert!(!shown.contains('\u{1b}'), "{door}: {shown:?}");
        assert!(!shown.contains("\nERROR"), "{door}: {shown}");
    }
    assert!(!line.contains('\n'), "{door}: {line}");
}

#[tokio::test]
async fn contexts_and_error_maps_are_tame() {
    let server = server(1, 0).await;
    let odd = Status::from_code(0x0fe1);
    let definition = ErrorDefinition {
        name: hostile(5000),
        description: hostile(5000),
        attributes: Attributes::ITEM_ONLY,
        retry: None,
    };
    server.error_map().set(odd.code(), definition);
    let setup = Setup::new(server, ClusterOptions::new()).await;
    setup.users.upsert("k", &1).await.unwrap();
    for status in [Status::InvalidArguments, odd] {
        let text = hostile(300_000);
        let fault = Fault::on(Opcode::Get).answer_with_context(status, &text, &text);
        let _guard = setup.server.fault(fault);
        let error = setup.users.get("k").await.unwrap_err();
        assert_tame(&error, &status.to_string());
    }
}

#[tokio::test]
async fn rejections_of_connections_are_tame() {
    for (opcode, status) in [
        (Opcode::SaslAuth, Status::AuthError),
        (Opcode::SelectBucket, Status::AccessError),
    ] {
        let server = server(1, 0).await;
        let text = hostile(300_000);
        let fault = Fault::on(opcode).answer_with_context(status, &text, "");
        let _guard = server.fault(fault);
        let cluster = connect(&server.connection_string(), app(), ClusterOptions::new()).await;
        let users = cluster.bucket(BUCKET).default_collection();
        let error = users.get("k").timeout(LONG).await.unwrap_err();
        assert_tame(&error, &status.to_string());
    }
}
