use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::options::{Authority, Compression, Network};

fn parse(text: &str) -> ConnectionString {
    ConnectionString::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn addresses(text: &str) -> Vec<(String, u16)> {
    let own = |(name, port): (&str, u16)| (name.to_owned(), port);
    parse(text).addresses().map(own).collect()
}

fn options(text: &str) -> ClusterOptions {
    let mut options = ClusterOptions::default();
    parse(text).apply_to(&mut options);
    options
}

#[test]
fn hosts_have_the_ports_that_are_written_or_the_scheme_s() {
    for (text, expected) in [
        ("couchbase://db", &[("db", 11210)][..]),
        ("couchbases://db", &[("db", 11207)]),
        ("COUCHBASE://db", &[("db", 11210)]),
        (
            " couchbase://db.example.com.\n",
            &[("db.example.com.", 11210)],
        ),
        (
            "couchbase://a:1,b;c_d:65535",
            &[("a", 1), ("b", 11210), ("c_d", 65535)],
        ),
        ("couchbase://10.0.0.1:12000", &[("10.0.0.1", 12000)]),
        (
            "couchbase://[::1],[2001:db8::1]:9",
            &[("::1", 11210), ("2001:db8::1", 9)],
        ),
        ("couchbase://db:11210=mcd", &[("db", 11210)]),
        ("couchbase://db/?", &[("db", 11210)]),
    ] {
        let own = |(name, port): &(&str, u16)| ((*name).to_owned(), *port);
        assert_eq!(
            addresses(text),
            expected.iter().map(own).collect::<Vec<_>>(),
            "{text}"
        );
    }
}

#[test]
fn an_invalid_connection_string_is_rejected_by_its_invalid_part() {
    for (text, part, problem) in [
        ("", "scheme", "is missing: write couchbase://"),
        ("db.example.com", "scheme", "is missing"),
        ("http://db:8091", "scheme", "write couchbase://"),
        ("https://db", "scheme", "write couchbases://"),
        ("couchbase2://db", "scheme", "gateway"),
        ("postgres://db", "scheme", "\"postgres\" is neither"),
        ("couchbase://", "host", "is missing"),
        ("couchbase:///bucket", "host", "is missing"),
        ("couchbase://app:hunter2@db", "host", "Credentials"),
        ("couchbase://a,,b", "host 2", "is empty"),
        ("couchbase://a,", "host 2", "is empty"),
        ("couchbase://a b", "host", "' '"),
        ("couchbase://a..b", "host", "label"),
        ("couchbase://1.2.3", "host", "is not an IPv4 address"),
        ("couchbase://1.2.3.256", "host", "is not an IPv4 address"),
        ("couchbase://::1", "host", "brackets"),
        ("couchbase://[::1", "host", "closing bracket"),
        ("couchbase://[::1]x", "host", "goes on"),
        ("couchbase://[db]", "host", "no valid IPv6 address"),
        ("couchbase://app:hunter2%40db", "host", "has an @ in it"),
        ("couchbase://app:hunter2%2540db", "host", "has an @ in it"),
        ("couchbase://app:hun/ter2%40db", "host", "has an @ in it"),
        ("couchbase://app:hun?ter2%40db", "host", "invalid port"),
        ("couchbase://a,b:0", "host 2", "invalid port"),
        ("couchbase://b:65536", "host", "invalid port"),
        ("couchbase://b:+1", "host", "invalid port"),
        ("couchbase://b:", "host", "invalid port"),
        ("couchbase://b:8091", "host", "management"),
        ("couchbase://b:8091=http", "host", "management"),
        ("couchbase://b:1=x", "host", "unknown purpose"),
        ("couchbase://db/a/b", "bucket", "'/'"),
        ("couchbase://db/a%20b", "bucket", "' '"),
        ("couchbase://db/%ff", "bucket", "UTF-8"),
        (
            "couchbase://db?kv_timout=1s",
            "option kv_timout",
            "did you mean kv_timeout?",
        ),
        (
            "couchbase://db?frobnicate=1s",
            "option frobnicate",
            "is not known",
        ),
        (
            "couchbase://db?password=hunter2",
            "option password",
            "credentials are given apart",
        ),
        ("couchbase://db?=1", "option ", "is not known"),
        (
            "couchbase://db?kv_timeout=1&kv_timeout=2",
            "option kv_timeout",
            "twice",
        ),
        (
            "couchbase://db?kv_timeout=1&key_value_timeout=2",
            "option key_value_timeout",
            "another name of kv_timeout",
        ),
        (
            "couchbase://db?kv_timeout",
            "option kv_timeout",
            "is not a duration",
        ),
        (
            "couchbase://db?kv_timeout=soon",
            "option kv_timeout",
            "\"soon\"",
        ),
        (
            "couchbase://db?kv_timeout=0s",
            "option kv_timeout",
            "is zero",
        ),
        (
            "couchbase://db?kv_timeout=%ff",
            "option kv_timeout",
            "UTF-8",
        ),
        (
            "couchbase://db?config_poll_interval=1ms",
            "option config_poll_interval",
            "50ms",
        ),
        (
            "couchbase://db?num_kv_connections=0",
            "option num_kv_connections",
            "between",
        ),
        (
            "couchbase://db?num_kv_connections=-1",
            "option num_kv_connections",
            "not a number",
        ),
        (
            "couchbase://db?dns_srv=maybe",
            "option dns_srv",
            "neither true nor false",
        ),
        ("couchbase://db?network=", "option network", "is empty"),
        (
            "couchbase://db?enable_tls=true",
            "option enable_tls",
            "write couchbases://",
        ),
        (
            "couchbase://db?tcp_keep_alive_time=60s",
            "option tcp_keep_alive_time",
            "probes idle connections",
        ),
        (
            "couchbase://db?config_profile=lan",
            "option config_profile",
            "use wan_development",
        ),
        (
            "couchbase://db?profile=wan_development&apply_profile=wan_development",
            "option apply_profile",
            "another name of profile",
        ),
        (
            "couchbases://db?tls_verify=maybe",
            "option tls_verify",
            "neither peer nor none",
        ),
        (
            "couchbases://db?trust_certificate=",
            "option trust_certificate",
            "is empty",
        ),
        (
            "couchbase://db?tls_verify=none",
            "option tls_verify",
            "couchbases://",
        ),
    ] {
        let error = ConnectionString::parse(text).unwrap_err();
        assert_eq!(error.part(), part, "{text}: {error}");
        assert!(error.problem().contains(problem), "{text}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn nothing_is_suggested_for_an_option_that_is_like_none() {
    for name in ["frobnicate", "x", &"kv_timeout".repeat(10)] {
        let error = ConnectionString::parse(&format!("couchbase://db?{name}=1")).unwrap_err();
        assert_eq!(error.problem(), "is not known");
    }
}

#[test]
fn options_are_set_and_what_is_not_named_stays() {
    let options = options(
        "couchbases://db?kv_timeout=1s&key_value_durable_timeout=3500&bootstrap_timeout=1.5s\
         &network=external&compression=off&enable_dns_srv=false&num_kv_connections=4\
         &tls_verify=none&trust_certificate=%2Fetc%2Fa%20b.pem&user_agent_extra=app%2F1\
         &config_push=0&max_in_flight=9",
    );
    assert_eq!(options.kv_timeout, Duration::from_secs(1));
    assert_eq!(options.kv_durable_timeout, Duration::from_millis(3500));
    assert_eq!(options.connect_timeout, Duration::from_millis(1500));
    assert_eq!(options.query_timeout, Duration::from_secs(75));
    assert_eq!(options.network, Network::Named("external".into()));
    assert_eq!(options.compression, Compression::Off);
    assert!(!options.dns_srv && !options.config_push && options.server_durations);
    assert_eq!((options.kv_connections, options.max_in_flight), (4, 9));
    assert_eq!(options.user_agent_extra, "app/1");
    assert!(options.tls.dangerous_skip_verification);
    assert_eq!(
        options.tls.authorities,
        [Authority::File("/etc/a b.pem".into())]
    );
}

#[test]
fn an_option_may_name_its_default() {
    let default = format!("{:?}", ClusterOptions::default());
    for option in ["network=auto", "compression=on", "dns_srv=true"] {
        let set = options(&format!("couchbases://db?{option}"));
        assert_eq!(format!("{set:?}"), default, "{option}");
    }
}

#[test]
fn every_option_is_set_by_every_one_of_its_names() {
    for (names, value) in [
        (&["kv_timeout", "key_value_timeout"][..], "7s"),
        (&["kv_durable_timeout", "key_value_durable_timeout"], "7s"),
        (
            &["connect_timeout", "bootstrap_timeout", "kv_connect_timeout"],
            "7s",
        ),
        (&["query_timeout"], "7s"),
        (&["analytics_timeout"], "7s"),
        (&["search_timeout"], "7s"),
        (&["view_timeout"], "7s"),
        (&["management_timeout"], "7s"),
        (&["idle_http_timeout", "idle_http_connection_timeout"], "7s"),
        (&["config_poll_interval"], "7s"),
        (&["mutation_tokens", "enable_mutation_tokens"], "off"),
        (
            &[
                "max_idle_http_connections",
                "max_idle_http_connections_per_host",
            ],
            "7",
        ),
        (&["config_push", "enable_clustermap_notification"], "off"),
        (&["dns_srv", "enable_dns_srv"], "off"),
        (&["server_durations", "enable_server_durations"], "off"),
        (&["compression", "enable_compression"], "off"),
        (&["network"], "default"),
        (&["kv_connections", "num_kv_connections"], "7"),
        (&["max_in_flight"], "7"),
        (&["user_agent_extra"], "7s"),
        (&["tls_verify"], "none"),
        (&["trust_certificate"], "7s"),
    ] {
        for name in names {
            // The option, and no other, differs from its default.
            let set = format!("{:?}", options(&format!("couchbases://db?{name}={value}")));
            let unset = format!("{:?}", ClusterOptions::default());
            let (set, unset): (Vec<_>, Vec<_>) = (split(&set), split(&unset));
            assert_eq!(set.len(), unset.len(), "{name}");
            let changed: Vec<_> = set.iter().zip(&unset).filter(|(a, b)| a != b).collect();
            let field = match names[0] {
                "tls_verify" => "dangerous_skip_verification",
                "trust_certificate" => "authorities",
                name => name,
            };
            assert!(
                changed.len() == 1 && changed[0].0.contains(field),
                "{name}: {changed:?}"
            );
        }
    }
}

#[test]
fn a_profile_gives_way_to_other_options_in_any_order() {
    for text in [
        "couchbase://db?config_profile=wan_development&query_timeout=3s",
        "couchbase://db?query_timeout=3s&apply_profile=wan-development",
    ] {
        let options = options(text);
        assert_eq!(options.query_timeout, Duration::from_secs(3), "{text}");
        for short in [
            options.kv_timeout,
            options.kv_durable_timeout,
            options.connect_timeout,
        ] {
            assert_eq!(short, Duration::from_secs(20), "{text}");
        }
        for long in [
            options.analytics_timeout,
            options.search_timeout,
            options.view_timeout,
            options.management_timeout,
        ] {
            assert_eq!(long, Duration::from_secs(120), "{text}");
        }
    }
}

/// The fields of a struct's debug form, one each, whatever is inside them.
fn split(shown: &str) -> Vec<String> {
    let shown = shown.replace("Snappy { min_size: 32, max_ratio: 0.83 }", "Off?");
    shown.split(", ").map(str::to_owned).collect()
}

#[test]
fn a_string_prints_as_one_that_reads_the_same() {
    for text in [
        "couchbase://db",
        "couchbases://a:1,[::1]:2,10.0.0.1/travel?kv_timeout=1s&user_agent_extra=a%26b%3D%25",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    let canonical = parse(" COUCHBASE://a;b:11210=mcd/?bootstrap_timeout=1s& ").to_string();
    assert_eq!(canonical, "couchbase://a,b:11210?connect_timeout=1s");
}

fn host() -> impl Strategy<Value = String> {
    let name = "[a-z][a-z0-9_-]{0,8}(\\.[a-z]{1,5}){0,2}";
    let v4 = any::<[u8; 4]>().prop_map(|octets| std::net::Ipv4Addr::from(octets).to_string());
    let v6 = any::<u128>().prop_map(|bits| format!("[{}]", std::net::Ipv6Addr::from(bits)));
    let port = proptest::option::of(1_u16..8000).prop_map(|port| match port {
        Some(port) => format!(":{port}"),
        None => String::new(),
    });
    (prop_oneof![name.boxed(), v4.boxed(), v6.boxed()], port).prop_map(|(host, port)| host + &port)
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}", rest in "[a-z0-9:;,/?&=%@.\\[\\]_-]{0,60}") {
        let _ = ConnectionString::parse(&text);
        let _ = ConnectionString::parse(&format!("couchbases://{rest}"));
        let _ = ConnectionString::parse(&format!("couchbase://db?{rest}"));
        let _ = ConnectionString::parse(&format!("couchbases://db?kv_timeout={rest}&tls_verify={text}"));
    }

    #[test]
    fn what_was_read_prints_as_what_reads_the_same(
        tls: bool,
        hosts in proptest::collection::vec(host(), 1..4),
        bucket in "[a-zA-Z0-9._%-]{0,12}",
        agent in proptest::option::of("[^\\p{C}]{1,20}"),
        timeout in proptest::option::of(1_u32..1_000_000),
    ) {
        // It is taken for the @ of a password, encoded twice.
        prop_assume!(!bucket.contains("%40"));
        let encode = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let mut text = format!(
            "{}://{}/{}?",
            if tls { "couchbases" } else { "couchbase" },
            hosts.join(","),
            encode(&bucket),
        );
        if let Some(agent) = &agent {
            text += &format!("user_agent_extra={}&", encode(agent));
        }
        if let Some(timeout) = timeout {
            text += &format!("kv_timeout={timeout}us&");
        }
        let string = ConnectionString::parse(&text).expect("it was made by the rules");
        prop_assert_eq!(&ConnectionString::parse(&string.to_string()), &Ok(string.clone()));
        prop_assert_eq!(string.is_tls(), tls);
        prop_assert_eq!(string.hosts().len(), hosts.len());
        prop_assert_eq!(string.bucket().unwrap_or_default(), bucket);
        let mut options = ClusterOptions::default();
        string.apply_to(&mut options);
        prop_assert_eq!(options.user_agent_extra, agent.unwrap_or_default());
    }
}
