use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{ReservedPort, TcpListener, TcpStream};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

async fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let port = listener.local_addr().unwrap().port();
    let (client, server) = tokio::join!(TcpStream::connect("127.0.0.1", port), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

#[tokio::test]
async fn real_sockets_carry_bytes_and_end_in_order() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let (mut client, mut server) = pair(&listener).await;
    client.set_nodelay(true).unwrap();
    client.write_all(b"hello").await.unwrap();
    let mut five = [0; 5];
    server.read_exact(&mut five).await.unwrap();
    assert_eq!(&five, b"hello");
    drop(server);
    assert_eq!(client.read(&mut five).await.unwrap(), 0);
}

#[tokio::test]
async fn a_real_socket_ends_with_a_reset_if_it_is_told_to() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let (mut client, server) = pair(&listener).await;
    let handle = server.reset_on_close();
    handle.set();
    drop((server, handle));
    let error = client.read(&mut [0; 1]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_reserved_port_refuses_connections_until_it_listens() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let reserved = ReservedPort::new(address).unwrap();
    let refused = TcpStream::connect("127.0.0.1", address.port()).await;
    let refused = refused.err().map(|error| error.kind());
    assert_eq!(refused, Some(std::io::ErrorKind::ConnectionRefused));
    let listener = reserved.listen(16).unwrap();
    pair(&listener).await;
}
