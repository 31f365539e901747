mod replaced;

use std::net::Ipv4Addr;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::rdata::SRV;
use hickory_resolver::proto::rr::{Name, Record};
use parking_lot::Mutex;
use tokio::net::UdpSocket;

use super::*;

/// Answers with what it was told, and remembers what it was asked.
#[derive(Default)]
struct Script {
    targets: Vec<SrvTarget>,
    fails: bool,
    hangs: bool,
    asked: Mutex<Vec<String>>,
}

impl SrvLookup for Script {
    fn lookup<'a>(&'a self, name: &'a str) -> SrvFuture<'a> {
        self.asked.lock().push(name.to_owned());
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            match self.fails {
                true => Err(LookupError::Timeout),
                false => Ok(self.targets.clone()),
            }
        })
    }
}

fn target(priority: u16, host: &str, port: u16) -> SrvTarget {
    let host = host.to_owned();
    SrvTarget {
        priority,
        host,
        port,
    }
}

async fn hosts(text: &str, dns: &dyn SrvLookup) -> Vec<(String, u16)> {
    let string = ConnectionString::parse(text).unwrap();
    let mut options = ClusterOptions::default();
    string.apply_to(&mut options);
    let seeds = seeds(&string, &options, dns).await;
    let host = |seed: Address| (seed.host.to_string(), seed.port);
    seeds.into_iter().map(host).collect()
}

#[tokio::test]
async fn the_hosts_of_the_record_take_the_place_of_the_name_the_preferred_first() {
    let dns = Script {
        targets: vec![
            target(2, "c.example.com.", 3),
            target(1, "a.example.com.", 1),
            target(1, "b.example.com", 2),
            target(1, "a.example.com.", 1),
            target(0, ".", 0),
        ],
        ..Script::default()
    };
    let found = hosts("couchbases://db.example.com", &dns).await;
    let expected = [
        ("a.example.com", 1),
        ("b.example.com", 2),
        ("c.example.com", 3),
    ];
    assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)));
    hosts("couchbase://db.example.com", &dns).await;
    assert_eq!(
        *dns.asked.lock(),
        [
            "_couchbases._tcp.db.example.com",
            "_couchbase._tcp.db.example.com"
        ]
    );
}

#[tokio::test]
async fn only_a_single_name_without_a_port_is_looked_up() {
    let dns = Script::default();
    for text in [
        "couchbase://a,b",
        "couchbase://a:11210",
        "couchbase://127.0.0.1",
        "couchbase://[::1]",
        "couchbase://a?dns_srv=off",
    ] {
        assert!(!hosts(text, &dns).await.is_empty());
    }
    assert_eq!(*dns.asked.lock(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_finds_nothing_fails_or_hangs_leaves_the_name_as_it_is() {
    let failing = Script {
        fails: true,
        ..Script::default()
    };
    let hanging = Script {
        hangs: true,
        ..Script::default()
    };
    for dns in [Script::default(), failing, hanging] {
        let before = tokio::time::Instant::now();
        let found = hosts("couchbase://db?connect_timeout=1s", &dns).await;
        assert_eq!(found, [("db".to_owned(), 11210)]);
        assert_eq!(dns.asked.lock().len(), 1);
        assert!(before.elapsed() <= Duration::from_millis(501));
    }
}

#[tokio::test]
async fn the_number_of_hosts_in_a_record_is_limited() {
    let targets = (1..=1000).map(|port| target(0, "a", port)).collect();
    let dns = Script {
        targets,
        ..Script::default()
    };
    assert_eq!(hosts("couchbase://db", &dns).await.len(), MOST_HOSTS);
}

/// A name server that knows one record.
async fn name_server() -> u16 {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut buffer = [0; 1500];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
            let mut message = Message::from_vec(&buffer[..length]).unwrap();
            message.metadata.message_type = MessageType::Response;
            let name = message.queries[0].name().clone();
            if name.to_ascii() == "_couchbase._tcp.db.example.com." {
                for (priority, port, host) in [(1, 12, "b.example.com."), (0, 11, "a.example.com.")]
                {
                    let srv = SRV::new(priority, 0, port, Name::from_ascii(host).unwrap());
                    let record = Record::from_rdata(name.clone(), 60, RData::SRV(srv));
                    message.add_answer(record);
                }
            } else {
                message.metadata.response_code = ResponseCode::NXDomain;
            }
            socket
                .send_to(&message.to_vec().unwrap(), peer)
                .await
                .unwrap();
        }
    });
    port
}

/// A real resolver, told to ask that name server.
struct Loopback(TokioResolver);

impl SrvLookup for Loopback {
    fn lookup<'a>(&'a self, name: &'a str) -> SrvFuture<'a> {
        Box::pin(ask(&self.0, name))
    }
}

#[tokio::test]
async fn a_real_name_server_is_asked_over_the_network() {
    let mut connection = ConnectionConfig::udp();
    connection.port = name_server().await;
    let server = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, vec![connection]);
    let config = ResolverConfig::from_name_servers(vec![server]);
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    let dns = Loopback(builder.build().unwrap());

    let found = hosts("couchbase://db.example.com", &dns).await;
    let expected = [("a.example.com", 11), ("b.example.com", 12)];
    assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)));
    let found = hosts("couchbase://other.example.com", &dns).await;
    assert_eq!(found, [("other.example.com".to_owned(), 11210)]);
}
