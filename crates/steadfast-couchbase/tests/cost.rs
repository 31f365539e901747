//! Memory cost of an operation: none for unused retry handling, and little while it
//! waits for its next attempt.
//!
//! Allocations are counted per thread, and the cluster runs on its own thread,
//! so that only those of the client count.
#![expect(
    unsafe_code,
    reason = "an allocator can be put between the program and the system in no other way"
)]
#![expect(clippy::unwrap_used, reason = "what fails to start fails the test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steadfast::strategy::RetryAction;
use steadfast::{RetryStrategy, from_fn};
use steadfast_cluster::fault::Fault;
use steadfast_couchbase::{Cluster, ClusterOptions, Collection};
use steadfast_wire::{Opcode, Status};
use tokio::runtime::{Builder, Runtime};

mod fixture;

/// A read allocates nothing; a write its JSON.
const READ: u64 = 0;
const WRITE: u64 = 1;

#[test]
fn first_try_success_allocates_its_json_and_nothing_else() {
    assert_first_try_allocates_little(ClusterOptions::new());
}

#[test]
fn the_brake_of_a_node_allocates_nothing() {
    assert_first_try_allocates_little(ClusterOptions::new().fleet(true));
}

fn assert_first_try_allocates_little(options: ClusterOptions) {
    const CALLS: u64 = 200;
    let setup = Setup::with(options, None);
    let documents = &setup.documents;
    setup.runtime.block_on(async {
        let work = async || {
            for _ in 0..CALLS {
                documents.upsert("u:42", &"Ada").await.unwrap();
            }
        };
        work().await;
        let before = ALLOCATIONS.get();
        work().await;
        assert_about(ALLOCATIONS.get() - before, CALLS * WRITE);

        let work = async || {
            for _ in 0..CALLS {
                documents.get("u:42").await.unwrap();
            }
        };
        work().await;
        let before = ALLOCATIONS.get();
        work().await;
        assert_about(ALLOCATIONS.get() - before, CALLS * READ);
    });
}

/// What many operations share, such as a receive buffer, is allocated now and
/// then; a background task may come in between.
#[track_caller]
fn assert_about(counted: u64, expected: u64) {
    const NOW_AND_THEN: u64 = 20;
    let fits = (expected..expected + NOW_AND_THEN).contains(&counted);
    assert!(fits, "{counted} allocations instead of {expected}");
}

/// Any number shows it: what grows with the operations is counted with them.
const PARKED: usize = 5_000;

const WAITING: i64 = 1500;

/// Options of a request's own are in a box. A task grows in steps of 128 bytes.
const OPTIONS: i64 = 256;

/// The history keeps the first three failures one by one, of about 250 bytes each with
/// what they say, and counts those that are alike from then on.
const WAITING_LONG: i64 = 2500;

#[test]
fn an_operation_that_waits_for_its_next_attempt_stays_within_its_limit() {
    let plain = parked_after(1, false);
    let special = parked_after(1, true);
    println!("{plain} bytes after one failure, {special} with options of its own");
    assert!(plain < WAITING, "{plain} bytes");
    assert!(special < WAITING + OPTIONS, "{special} bytes with options");
}

#[test]
fn repeated_failures_do_not_grow_an_operation() {
    let (early, late) = (parked_after(4, false), parked_after(20, false));
    println!("{early} bytes after four failures, {late} after twenty");
    assert!(late < WAITING_LONG, "{late} bytes");
    // A separate record would take two hundred.
    assert!(late < early + 100, "{early} bytes, then {late}");
}

/// The bytes of one operation, its task and its history included, when all have
/// made so many attempts and wait for the next. Timeout and strategy are those of the
/// client, or of each operation.
fn parked_after(attempts: usize, own_options: bool) -> i64 {
    let decisions = Arc::new(AtomicUsize::new(0));
    let counted = decisions.clone();
    let strategy: Arc<dyn RetryStrategy> = Arc::new(from_fn(move |request, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        let is_last = request.attempts() as usize == attempts;
        let delay = if is_last { 300_000 } else { 1 };
        RetryAction::with_duration(Duration::from_millis(delay))
    }));
    let timeout = Duration::from_secs(600);
    let options = ClusterOptions::new()
        .retry_strategy(strategy.clone())
        .kv_timeout(timeout);
    let fault = Fault::on(Opcode::Get).answer(Status::TemporaryFailure);
    let setup = Setup::with(options, Some(fault));
    let taken = setup.runtime.block_on(async {
        // Whatever is set up once is there.
        let _ = setup.documents.upsert("u:42", &"Ada").await;
        let before = BYTES.get();
        for number in 0..PARKED {
            let (documents, id) = (setup.documents.clone(), format!("u:{number}"));
            if own_options {
                let strategy = strategy.clone();
                tokio::spawn(async move {
                    let get = documents.get(&id).timeout(timeout);
                    get.retry(strategy).await.is_ok()
                });
            } else {
                tokio::spawn(async move { documents.get(&id).await.is_ok() });
            }
        }
        while decisions.load(Ordering::Relaxed) < PARKED * attempts {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // A request of the client itself may keep the connection's memory for a moment.
        let mut least = i64::MAX;
        for _ in 0..50 {
            least = least.min(BYTES.get() - before);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        least / PARKED as i64
    });
    drop(setup);
    taken
}

/// A client on this thread, and a cluster on another.
struct Setup {
    runtime: Runtime,
    documents: Collection,
    /// The cluster ends when this is dropped.
    _end: mpsc::Sender<()>,
}

impl Setup {
    fn with(options: ClusterOptions, fault: Option<Fault>) -> Self {
        let (end, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = fixture::server(1, 0).await;
                let _fault = fault.map(|fault| server.fault(fault));
                tell.send(server.connection_string()).unwrap();
                let _ = tokio::task::spawn_blocking(move || ended.recv()).await;
            });
        });
        let server = told.recv().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let documents = runtime.block_on(async {
            let connecting = Cluster::connect_with(&server, fixture::app(), options);
            let cluster = connecting.await.unwrap();
            cluster.bucket(fixture::BUCKET).default_collection()
        });
        Self {
            runtime,
            documents,
            _end: end,
        }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    // Neither lazily made nor dropped, so the allocator may use them at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The system's allocator, with a tally.
struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged, and
// counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promises are the ones that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.set(BYTES.get() - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

fn count(bytes: i64) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    BYTES.set(BYTES.get() + bytes);
}
