//! Memory stays bounded when clients with a login read nothing of large responses over HTTP.
//!
//! One test in one process, because it looks at the memory of all of it.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and may say what it saw"
)]

#[path = "cluster/support/mod.rs"]
mod support;

use steadfast_cluster::Service;
use steadfast_cluster::fault::{Fault, Garble};
use steadfast_cluster::script::Script;
use support::builder;
use support::http::Call;
use support::memory::{MIB, resident, settle};
use tokio::io::AsyncReadExt;

const READERS: usize = 40;
const RESPONSE: usize = 16 * MIB;
/// The 256 MiB that all responses may have, and what the allocator keeps. Without a bound the
/// responses of this test have 640 MiB.
const ALLOWED: usize = 400 * MIB;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_stays_bounded_when_clients_read_nothing_of_large_responses() {
    let cluster = builder(1, 0).start().await.unwrap();
    // A script answers with the same bytes each time. The damaged ones are copies.
    let _script = cluster.script(Script::on(Service::Query).answer(200, vec![b'x'; RESPONSE]));
    let garble = Fault::on_service(Service::Query).garble(Garble::Body);
    let damaged = cluster.fault(garble);
    let call = Call::new("POST", "/query/service").body("{}");
    let before = resident();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = call.start(&cluster, Service::Query).await;
        // The response has begun.
        reader.read_exact(&mut [0; 1024]).await.unwrap();
        readers.push(reader);
    }
    settle().await;
    let grown = resident().saturating_sub(before);
    println!(
        "{READERS} slow readers: {} MiB more than before",
        grown / MIB
    );
    assert!(grown < ALLOWED, "grew by {} MiB", grown / MIB);
    // A client that reads gets everything. So does the last one, and the first one made room.
    drop(damaged);
    let whole = call.send(&cluster, Service::Query).await;
    assert!(whole.whole && whole.body.len() == RESPONSE);
    let mut rest = Vec::new();
    let last = readers.pop().unwrap().read_to_end(&mut rest).await;
    assert!(
        last.is_ok() && rest.len() + 1024 > RESPONSE,
        "{} bytes",
        rest.len()
    );
    rest.clear();
    let first = readers.remove(0).read_to_end(&mut rest).await;
    assert!(
        first.is_err() || rest.len() + 1024 < RESPONSE,
        "{} bytes",
        rest.len()
    );
}
