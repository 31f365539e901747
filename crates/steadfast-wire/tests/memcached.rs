//! An outside check: the basics that Couchbase shares with memcached, spoken to the real thing.
//!
//! Looks for a `memcached` on the path, and says so where there is none.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use steadfast_wire::extras::{
    CounterExtras, CounterValue, DocumentFlags, ExpiryExtras, StoreExtras,
};
use steadfast_wire::{
    Decoded, Encode, Frame, FrameBuilder, FrameDecoder, FrameError, Opcode, Status,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// A server of our own on a port of its choice, stopped when dropped.
struct Memcached {
    process: Child,
    directory: PathBuf,
    port: u16,
}

impl Memcached {
    fn start(binary: &Path) -> Self {
        let directory = std::env::temp_dir().join(format!("wire-memcached-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the port file");
        let port_file = directory.join("port");
        let process = Command::new(binary)
            // The user counts only for root, whom memcached does not want to run for otherwise.
            .args([
                "-B",
                "binary",
                "-l",
                "127.0.0.1",
                "-p",
                "-1",
                "-U",
                "0",
                "-u",
                "root",
            ])
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .stdin(Stdio::null())
            .spawn()
            .expect("memcached starts");
        let mut server = Self {
            process,
            directory,
            port: 0,
        };
        let deadline = Instant::now() + PATIENCE;
        while server.port == 0 {
            let written = std::fs::read_to_string(&port_file).unwrap_or_default();
            let port = written
                .lines()
                .find_map(|line| line.strip_prefix("TCP INET: "));
            server.port = port.and_then(|port| port.trim().parse().ok()).unwrap_or(0);
            assert!(
                Instant::now() < deadline,
                "memcached told no port: {written:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    fn connect(&self) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("memcached listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout can be set");
        Connection {
            stream,
            received: BytesMut::new(),
        }
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

struct Connection {
    stream: TcpStream,
    received: BytesMut,
}

impl Connection {
    fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("memcached reads");
    }

    /// The next frame, or `None` if the server hung up.
    fn receive(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match FrameDecoder::from_server().decode(&mut self.received)? {
                Decoded::Frame(frame) => return Ok(Some(frame)),
                Decoded::NeedMore(missing) => {
                    let mut chunk = vec![0; missing];
                    match self
                        .stream
                        .read(&mut chunk)
                        .expect("memcached answers in time")
                    {
                        0 => return Ok(None),
                        len => self.received.extend_from_slice(&chunk[..len]),
                    }
                }
            }
        }
    }

    fn call(
        &mut self,
        request: FrameBuilder<impl Encode, impl Encode, impl Encode, impl Encode>,
    ) -> Frame {
        let mut bytes = BytesMut::new();
        request
            .opaque(0xcafe)
            .encode(&mut bytes)
            .expect("the request fits");
        self.send(&bytes);
        let response = self.receive().expect("frames").expect("an answer");
        assert_eq!(response.opaque(), 0xcafe);
        response
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

fn request(opcode: Opcode) -> FrameBuilder {
    FrameBuilder::request(opcode)
}

fn store(opcode: Opcode, key: &str, value: &str) -> FrameBuilder<(), StoreExtras, String, String> {
    let extras = StoreExtras {
        flags: 0xdead_beef,
        expiry: 0,
    };
    request(opcode)
        .extras(extras)
        .key(key.to_owned())
        .value(value.to_owned())
}

fn counter(
    opcode: Opcode,
    delta: u64,
    expiry: u32,
) -> FrameBuilder<(), CounterExtras, &'static str> {
    request(opcode)
        .extras(CounterExtras {
            delta,
            initial: 40,
            expiry,
        })
        .key("counter")
}

#[test]
fn memcached_understands_us_and_we_understand_it() {
    let Some(binary) = on_path("memcached") else {
        // Past the test harness, which would show what a passed test printed to nobody.
        let notice = "SKIPPED: the outside check against memcached, because none is on the path";
        writeln!(std::io::stderr(), "{notice}").expect("stderr can be written");
        return;
    };
    let server = Memcached::start(&binary);
    let mut connection = server.connect();
    documents(&mut connection);
    counters(&mut connection);
    refusals(&mut connection);
    many_at_once(&mut connection);
    bytes_that_do_not_fit_are_noticed(&server);
    leaving(&mut connection);
}

fn documents(connection: &mut Connection) {
    let missing = connection.call(request(Opcode::Get).key(b"foo"));
    assert_eq!(missing.status(), Status::KeyNotFound);

    let stored = connection.call(store(Opcode::Set, "foo", "bar"));
    assert_eq!(stored.status(), Status::Success);
    assert_ne!(stored.header().cas, 0);

    let found = connection.call(request(Opcode::Get).key(b"foo"));
    assert_eq!(found.status(), Status::Success);
    assert_eq!(
        DocumentFlags::decode(found.extras()).expect("flags").flags,
        0xdead_beef
    );
    assert_eq!(
        (found.value(), found.header().cas),
        (&b"bar"[..], stored.header().cas)
    );

    let exists = connection.call(store(Opcode::Add, "foo", "other"));
    assert_eq!(exists.status(), Status::KeyExists);
    let wrong_cas = connection.call(store(Opcode::Replace, "foo", "x").cas(found.header().cas + 1));
    assert_eq!(wrong_cas.status(), Status::KeyExists);
    let replaced = connection.call(store(Opcode::Replace, "foo", "baz").cas(found.header().cas));
    assert_eq!(replaced.status(), Status::Success);

    let appended = connection.call(request(Opcode::Append).key("foo").value("!"));
    assert_eq!(appended.status(), Status::Success);
    let prepended = connection.call(request(Opcode::Prepend).key("foo").value("?"));
    assert_eq!(prepended.status(), Status::Success);
    let expiry = ExpiryExtras { expiry: 1000 };
    let touched = connection.call(request(Opcode::Touch).extras(expiry).key("foo"));
    assert_eq!(touched.status(), Status::Success);
    let fetched = connection.call(request(Opcode::GetAndTouch).extras(expiry).key("foo"));
    assert_eq!(fetched.value(), b"?baz!");

    assert_eq!(
        connection.call(request(Opcode::Delete).key("foo")).status(),
        Status::Success
    );
    assert_eq!(
        connection.call(request(Opcode::Delete).key("foo")).status(),
        Status::KeyNotFound
    );
}

fn counters(connection: &mut Connection) {
    let value = |frame: Frame| CounterValue::decode(frame.value()).expect("a number").value;
    let absent = connection.call(counter(Opcode::Increment, 2, CounterExtras::DO_NOT_CREATE));
    assert_eq!(absent.status(), Status::KeyNotFound);
    assert_eq!(value(connection.call(counter(Opcode::Increment, 2, 0))), 40);
    assert_eq!(value(connection.call(counter(Opcode::Increment, 2, 0))), 42);
    assert_eq!(
        value(connection.call(counter(Opcode::Decrement, 100, 0))),
        0
    );
}

fn refusals(connection: &mut Connection) {
    let not_stored = connection.call(request(Opcode::Append).key("nobody").value("!"));
    assert_eq!(not_stored.status(), Status::NotStored);
    connection.call(store(Opcode::Set, "counter", "text"));
    let no_number = connection.call(counter(Opcode::Increment, 1, 0));
    assert_eq!(no_number.status(), Status::DeltaBadValue);
    let unknown = connection.call(request(Opcode::from_code(0xee)));
    assert_eq!(unknown.status(), Status::UnknownCommand);
}

/// A batch in one write; the answers come in its order and in whatever pieces they come.
fn many_at_once(connection: &mut Connection) {
    const COUNT: u32 = 500;
    let mut batch = BytesMut::new();
    for opaque in 0..COUNT {
        let key = format!("key-{opaque}");
        store(Opcode::Set, &key, &key)
            .opaque(opaque)
            .encode(&mut batch)
            .expect("it fits");
        request(Opcode::Get)
            .key(&key)
            .opaque(opaque)
            .encode(&mut batch)
            .expect("it fits");
    }
    connection.send(&batch);
    for opaque in 0..COUNT {
        let stored = connection.receive().expect("frames").expect("an answer");
        assert_eq!((stored.opcode(), stored.opaque()), (Opcode::Set, opaque));
        let found = connection.receive().expect("frames").expect("an answer");
        assert_eq!((found.opcode(), found.opaque()), (Opcode::Get, opaque));
        assert_eq!(found.value(), format!("key-{opaque}").as_bytes());
    }
}

/// The other side of the check: were our frames laid out wrongly, the server would not answer.
fn bytes_that_do_not_fit_are_noticed(server: &Memcached) {
    let mut connection = server.connect();
    let mut bytes = BytesMut::new();
    store(Opcode::Set, "foo", "bar")
        .encode(&mut bytes)
        .expect("it fits");
    // One byte less of extras than a store has.
    bytes[4] = 7;
    connection.send(&bytes);
    match connection.receive() {
        Ok(Some(frame)) => assert_eq!(frame.status(), Status::InvalidArguments),
        Ok(None) => {}
        Err(error) => panic!("{error}"),
    }
}

fn leaving(connection: &mut Connection) {
    assert_eq!(
        connection.call(request(Opcode::Noop)).status(),
        Status::Success
    );
    let version = connection.call(request(Opcode::Version));
    assert!(version.value().starts_with(b"1."), "{version:?}");
    assert_eq!(
        connection.call(request(Opcode::Quit)).status(),
        Status::Success
    );
    assert_eq!(connection.receive(), Ok(None));
}
