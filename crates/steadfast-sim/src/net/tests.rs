//! Tests of the network: each fault does what it says.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use steadfast_os::net::{TcpListener, TcpStream};
use steadfast_os::{Entered, wall_clock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use super::*;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);

/// A network with a listener, both ends of a connection, and what keeps it current.
struct Net {
    network: Arc<Network>,
    listener: TcpListener,
    client: TcpStream,
    node: TcpStream,
    _entered: Entered,
}

impl Net {
    async fn new(latency: Duration) -> Self {
        let usual = Conditions {
            latency,
            ..Conditions::default()
        };
        let network = Network::new(7, usual);
        let entered = steadfast_os::enter(Arc::new(SimulatedPlatform(network.clone())));
        let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let listener = TcpListener::bind(any).await.unwrap();
        let (client, node) = pair(&listener).await;
        Self {
            network,
            listener,
            client,
            node,
            _entered: entered,
        }
    }

    fn ports(&self) -> [u16; 1] {
        [self.listener.local_addr().unwrap().port()]
    }

    fn connection(&self) -> Arc<Connection> {
        self.network.connections(&self.ports())[0].clone()
    }
}

async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let port = listener.local_addr().unwrap().port();
    let (client, node) = tokio::join!(TcpStream::connect("127.0.0.1", port), listener.accept());
    (client.unwrap(), node.unwrap().0)
}

/// Sends one byte and returns how long it takes to arrive.
async fn one_way(from: &mut TcpStream, to: &mut TcpStream) -> Duration {
    let start = Instant::now();
    from.write_all(b"x").await.unwrap();
    to.read_exact(&mut [0; 1]).await.unwrap();
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn bytes_arrive_in_order_after_the_latency() {
    let mut net = Net::new(5 * MS).await;
    net.client.write_all(b"ab").await.unwrap();
    net.client.write_all(b"cd").await.unwrap();
    let start = Instant::now();
    let mut four = [0; 4];
    net.node.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"abcd");
    assert_eq!(start.elapsed(), 5 * MS);
    assert_eq!(one_way(&mut net.node, &mut net.client).await, 5 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_for_one_direction_and_delivers_everything_when_it_ends() {
    let mut net = Net::new(MS).await;
    let ports = net.ports();
    net.network
        .change(&ports, Direction::ToNode, |it| it.held = true);
    assert_eq!(one_way(&mut net.node, &mut net.client).await, MS);
    net.client.write_all(b"late").await.unwrap();
    let mut four = [0; 4];
    assert!(timeout(LONG, net.node.read_exact(&mut four)).await.is_err());
    // A new connection does not come through either.
    let opened = timeout(LONG, TcpStream::connect("127.0.0.1", ports[0])).await;
    assert!(opened.is_err());
    net.network.restore(&ports, Direction::ToNode);
    net.node.read_exact(&mut four).await.unwrap();
    assert_eq!(&four, b"late");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_reader_and_dialler_continue_when_a_hold_ends() {
    let mut net = Net::new(MS).await;
    let ports = net.ports();
    net.network
        .change(&ports, Direction::ToNode, |it| it.held = true);
    net.client.write_all(b"x").await.unwrap();
    let network = net.network.clone();
    let healed = async {
        sleep(50 * MS).await;
        network.restore(&ports, Direction::ToNode);
    };
    let start = Instant::now();
    let mut one = [0; 1];
    let read = net.node.read_exact(&mut one);
    let dial = TcpStream::connect("127.0.0.1", ports[0]);
    let (read, dialled, ()) = tokio::join!(read, dial, healed);
    assert!(read.is_ok() && dialled.is_ok());
    assert_eq!(start.elapsed(), 52 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_silent_for_ever_and_a_new_one_works() {
    let mut net = Net::new(MS).await;
    net.connection().lose(Direction::FromNode);
    net.node.write_all(b"x").await.unwrap();
    assert!(timeout(LONG, net.client.read(&mut [0; 1])).await.is_err());
    assert_eq!(one_way(&mut net.client, &mut net.node).await, MS);
    let (mut client, mut node) = pair(&net.listener).await;
    assert_eq!(one_way(&mut node, &mut client).await, MS);
}

#[tokio::test(start_paused = true)]
async fn a_cut_lets_exactly_so_many_bytes_through() {
    for cut in 0..6 {
        let mut net = Net::new(MS).await;
        net.client.write_all(b"12").await.unwrap();
        net.node.read_exact(&mut [0; 2]).await.unwrap();
        net.connection().cut_after(Direction::ToNode, cut);
        // The sender cannot tell that the end of it is lost.
        net.client.write_all(b"abcdef").await.unwrap();
        let mut seen = Vec::new();
        net.node.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, &b"abcdef"[..cut as usize]);
        assert_eq!(net.client.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(net.client.write_all(b"more").await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_both_ends_with_an_error() {
    let mut net = Net::new(MS).await;
    let connection = net.connection();
    let network = async {
        sleep(MS).await;
        connection.reset();
    };
    let mut one = [0; 1];
    let (read, ()) = tokio::join!(net.client.read(&mut one), network);
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    let written = net.node.write(b"x").await;
    assert_eq!(written.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn bandwidth_delays_later_bytes() {
    let mut net = Net::new(Duration::ZERO).await;
    let ports = net.ports();
    net.network
        .change(&ports, Direction::ToNode, |it| it.bandwidth = Some(1000));
    let start = Instant::now();
    net.client.write_all(&[1; 500]).await.unwrap();
    net.client.write_all(&[2; 500]).await.unwrap();
    net.node.read_exact(&mut [0; 500]).await.unwrap();
    assert_eq!(start.elapsed(), 500 * MS);
    net.node.read_exact(&mut [0; 500]).await.unwrap();
    assert_eq!(start.elapsed(), 1000 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_makes_the_writer_wait() {
    let mut net = Net::new(Duration::ZERO).await;
    let ports = net.ports();
    let rate = 100_000;
    net.network
        .change(&ports, Direction::ToNode, |it| it.read_rate = Some(rate));
    let bytes = vec![0; connection::BUFFER + 100_000];
    let start = Instant::now();
    let node = &mut net.node;
    let reads = async {
        let mut buffer = vec![0; 1000];
        while node.read(&mut buffer).await.unwrap() > 0 {}
    };
    tokio::select! {
        written = net.client.write_all(&bytes) => written.unwrap(),
        () = reads => unreachable!("the writer is there"),
    }
    let took = start.elapsed();
    assert!(took >= 900 * MS && took <= 1200 * MS, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn jitter_lets_connections_overtake_each_other_but_not_bytes_of_one() {
    let mut net = Net::new(MS).await;
    let ports = net.ports();
    let (mut other, mut other_node) = pair(&net.listener).await;
    net.network
        .change(&ports, Direction::ToNode, |it| it.jitter = 50 * MS);
    let mut overtaken = 0;
    for round in 0..20u8 {
        net.client.write_all(&[round, 1]).await.unwrap();
        net.client.write_all(&[2]).await.unwrap();
        other.write_all(&[3]).await.unwrap();
        let (mut three, mut one) = ([0; 3], [0; 1]);
        let start = Instant::now();
        let first = async {
            net.node.read_exact(&mut three).await.unwrap();
            start.elapsed()
        };
        let second = async {
            other_node.read_exact(&mut one).await.unwrap();
            start.elapsed()
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!(three, [round, 1, 2]);
        overtaken += u32::from(second < first);
    }
    assert!((3..=19).contains(&overtaken), "{overtaken}");
}

#[tokio::test(start_paused = true)]
async fn a_close_arrives_after_the_bytes_and_unread_bytes_make_it_a_reset() {
    let mut net = Net::new(MS).await;
    net.node.write_all(b"bye").await.unwrap();
    drop(net.node);
    let mut seen = Vec::new();
    net.client.read_to_end(&mut seen).await.unwrap();
    assert_eq!(seen, b"bye");

    let (mut client, node) = pair(&net.listener).await;
    client.write_all(b"unread").await.unwrap();
    drop(node);
    let end = client.read(&mut [0; 1]).await;
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test(start_paused = true)]
async fn a_port_without_a_listener_refuses_and_listens_again() {
    let net = Net::new(MS).await;
    let address = net.listener.local_addr().unwrap();
    assert!(TcpListener::bind(address).await.is_err());
    drop(net.listener);
    let refused = TcpStream::connect("127.0.0.1", address.port()).await.err();
    let refused = refused.map(|error| error.kind());
    assert_eq!(refused, Some(io::ErrorKind::ConnectionRefused));
    pair(&TcpListener::bind(address).await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn the_trace_depends_on_bytes_times_and_connections() {
    let run = |pause: u32, text: &'static [u8]| async move {
        let mut net = Net::new(MS).await;
        sleep(MS * pause).await;
        net.client.write_all(text).await.unwrap();
        net.network.trace().hash()
    };
    let first = run(3, b"abc").await;
    assert_eq!(first, run(3, b"abc").await);
    assert_ne!(first, run(4, b"abc").await);
    assert_ne!(first, run(3, b"abd").await);
}

#[tokio::test(start_paused = true)]
async fn the_wall_clock_follows_virtual_time() {
    let _net = Net::new(MS).await;
    let before = wall_clock();
    sleep(LONG).await;
    assert_eq!(wall_clock().duration_since(before).unwrap(), LONG);
}
