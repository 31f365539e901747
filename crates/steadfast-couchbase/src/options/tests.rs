use steadfast::BestEffort;

use super::*;

#[test]
fn the_defaults_are_those_of_rfc_0059_and_can_work() {
    let options = ClusterOptions::default();
    assert_eq!(options.kv_timeout, Duration::from_millis(2500));
    assert_eq!(options.kv_durable_timeout, Duration::from_secs(10));
    assert_eq!(options.connect_timeout, Duration::from_secs(10));
    for timeout in [
        options.query_timeout,
        options.analytics_timeout,
        options.search_timeout,
        options.view_timeout,
        options.management_timeout,
    ] {
        assert_eq!(timeout, Duration::from_secs(75));
    }
    assert_eq!(options.config_poll_interval, Duration::from_millis(2500));
    assert_eq!(options.idle_http_timeout, Duration::from_secs(1));
    assert!(options.circuit_breaker.is_none() && options.retry_strategy.is_none());
    assert_eq!(options.validate(), Ok(()));
    let endless = options.clone().kv_timeout(Duration::MAX);
    assert_eq!(endless.validate(), Ok(()), "no timeout at all is a wish");
    let breaker = BreakerSettings::default();
    assert_eq!(options.circuit_breaker(breaker).validate(), Ok(()));
}

#[test]
fn an_invalid_option_is_rejected_by_name() {
    let new = ClusterOptions::new;
    let zero = Duration::ZERO;
    let snappy = |max_ratio| Compression::Snappy {
        min_size: 0,
        max_ratio,
    };
    let breaker = BreakerSettings {
        volume_threshold: 0,
        ..BreakerSettings::default()
    };
    for (options, part) in [
        (new().kv_timeout(zero), "kv_timeout"),
        (new().kv_durable_timeout(zero), "kv_durable_timeout"),
        (new().connect_timeout(zero), "connect_timeout"),
        (new().query_timeout(zero), "query_timeout"),
        (new().analytics_timeout(zero), "analytics_timeout"),
        (new().search_timeout(zero), "search_timeout"),
        (new().view_timeout(zero), "view_timeout"),
        (new().management_timeout(zero), "management_timeout"),
        (new().idle_http_timeout(zero), "idle_http_timeout"),
        (
            new().config_poll_interval(Duration::from_millis(49)),
            "config_poll_interval",
        ),
        (
            new().config_poll_interval(Duration::MAX),
            "config_poll_interval",
        ),
        (new().circuit_breaker(breaker), "circuit_breaker"),
        (new().kv_connections(0), "kv_connections"),
        (new().kv_connections(65), "kv_connections"),
        (new().max_in_flight(0), "max_in_flight"),
        (new().max_in_flight(u32::MAX), "max_in_flight"),
        (new().user_agent_extra("a\nb"), "user_agent_extra"),
        (new().user_agent_extra("a".repeat(129)), "user_agent_extra"),
        (
            new().vbucket_retry(VbucketRetry::Fixed(zero)),
            "vbucket_retry",
        ),
        (new().network(Network::Named(String::new())), "network"),
        (new().compression(snappy(0.0)), "compression"),
        (new().compression(snappy(f32::NAN)), "compression"),
        (new().compression(snappy(1.1)), "compression"),
        (
            new().reports(ReportOptions::new().sample_size(0)),
            "reports.sample_size",
        ),
        (
            new().reports(ReportOptions::new().interval(zero)),
            "reports.interval",
        ),
        (
            new().reports(ReportOptions::new().kv_threshold(zero)),
            "reports.kv_threshold",
        ),
    ] {
        let error = options.validate().unwrap_err();
        assert_eq!(error.part(), part, "{error}");
    }
}

#[test]
fn optional_parts_are_set_and_unset_in_the_same_way() {
    let options = ClusterOptions::new()
        .circuit_breaker(BreakerSettings::default())
        .max_idle_http_connections(None)
        .retry_strategy(BestEffort::default());
    assert!(options.circuit_breaker.is_some() && options.max_idle_http_connections.is_none());
    assert!(options.retry_strategy.is_some());
    assert_eq!(options.validate(), Ok(()));
    assert!(options.circuit_breaker(None).circuit_breaker.is_none());
}

#[test]
fn options_print_as_what_they_are() {
    let shown = format!("{:?}", ClusterOptions::new().kv_connections(3));
    assert!(shown.starts_with("ClusterOptions { kv_timeout: 2.5s"));
    assert!(shown.contains("kv_connections: 3"));
}

#[test]
fn max_in_flight_is_limited_to_what_a_connection_can_hold() {
    let with = |max| ClusterOptions::new().max_in_flight(max).validate();
    assert!(with((1 << 20) - 1).is_ok());
    let error = with(1 << 20).unwrap_err().to_string();
    assert!(error.contains("max_in_flight"), "{error}");
    assert!(error.contains("between 1 and 1048575"), "{error}");
}
