//! The options that a connection string can have.

use std::time::Duration;

use crate::options::{ClusterOptions, Compression, Network, Profile};

/// A year: a longer duration was probably meant in another unit.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// An option, with what it does to the cluster's options.
pub(super) struct Known {
    /// Its name here, and then those that other clients have for it.
    names: &'static [&'static str],
    needs_tls: bool,
    set: Set,
}

/// Sets an option, or reads on from its name what is wrong with the value.
type Set = fn(&mut ClusterOptions, &str) -> Result<(), String>;

impl Known {
    /// The option with this name.
    pub(super) fn find(name: &str) -> Result<&'static Self, String> {
        if let Some(known) = ALL.iter().find(|known| known.names.contains(&name)) {
            return Ok(known);
        }
        if matches!(
            name,
            "username" | "password" | "user" | "certpath" | "keypath"
        ) {
            return Err(
                "does not belong here: credentials are given apart from the connection string"
                    .into(),
            );
        }
        if let Some(instead) = instead(name) {
            return Err(instead.into());
        }
        Err(match nearest(name) {
            Some(nearest) => format!("is not known; did you mean {nearest}?"),
            None => "is not known".into(),
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.names[0]
    }

    /// Whether it sets many options at once, which others then replace.
    pub(super) fn is_profile(&self) -> bool {
        self.name() == "profile"
    }

    pub(super) fn needs_tls(&self) -> bool {
        self.needs_tls
    }

    pub(super) fn set(&self, options: &mut ClusterOptions, value: &str) -> Result<(), String> {
        (self.set)(options, value)
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Known {}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! known {
    ($([$($name:literal),+] $($tls:ident)?, $set:expr;)*) => {
        &[$(Known {
            names: &[$($name),+],
            needs_tls: known!(@tls $($tls)?),
            set: $set,
        }),*]
    };
    (@tls tls) => { true };
    (@tls) => { false };
}

/// Sets a field to what a function reads from the value.
macro_rules! set {
    ($field:ident, $read:expr) => {
        |options, value| {
            options.$field = $read(value)?.into();
            Ok(())
        }
    };
}

static ALL: &[Known] = known! {
    ["kv_timeout", "key_value_timeout"], set!(kv_timeout, duration);
    ["kv_durable_timeout", "key_value_durable_timeout"], set!(kv_durable_timeout, duration);
    ["connect_timeout", "bootstrap_timeout", "kv_connect_timeout"], set!(connect_timeout, duration);
    ["query_timeout"], set!(query_timeout, duration);
    ["analytics_timeout"], set!(analytics_timeout, duration);
    ["search_timeout"], set!(search_timeout, duration);
    ["view_timeout"], set!(view_timeout, duration);
    ["management_timeout"], set!(management_timeout, duration);
    ["idle_http_timeout", "idle_http_connection_timeout"], set!(idle_http_timeout, duration);
    ["config_poll_interval"], set!(config_poll_interval, duration);
    ["config_push", "enable_clustermap_notification"], set!(config_push, switch);
    ["dns_srv", "enable_dns_srv"], set!(dns_srv, switch);
    ["server_durations", "enable_server_durations"], set!(server_durations, switch);
    ["mutation_tokens", "enable_mutation_tokens"], set!(mutation_tokens, switch);
    ["max_idle_http_connections", "max_idle_http_connections_per_host"],
        set!(max_idle_http_connections, number::<usize>);
    ["profile", "config_profile", "apply_profile"], |options, value| {
        options.apply_profile(profile(value)?);
        Ok(())
    };
    ["compression", "enable_compression"], set!(compression, compression);
    ["network"], set!(network, network);
    ["kv_connections", "num_kv_connections"], set!(kv_connections, number::<u16>);
    ["max_in_flight"], set!(max_in_flight, number::<u32>);
    ["user_agent_extra"], set!(user_agent_extra, text);
    ["tls_verify"] tls, |options, value| {
        options.tls.dangerous_skip_verification = match value {
            "none" => true,
            "peer" => false,
            other => return Err(format!("is neither peer nor none: {other:?}")),
        };
        Ok(())
    };
    ["trust_certificate"] tls, |options, value| {
        options.tls = std::mem::take(&mut options.tls).trust_file(text(value)?);
        Ok(())
    };
};

/// Says what to use instead of an option that other clients have.
fn instead(name: &str) -> Option<&'static str> {
    Some(match name {
        "enable_tls" => {
            "is decided by the scheme: write couchbases:// with TLS, couchbase:// without"
        }
        "tcp_keepalive" | "tcp_keep_alive_interval" | "tcp_keep_alive_time" => {
            "is not needed: the client itself probes idle connections"
        }
        _ => return None,
    })
}

fn profile(value: &str) -> Result<Profile, String> {
    match value {
        "wan_development" | "wan-development" => Ok(Profile::WanDevelopment),
        other => Err(format!("is not a profile: {other:?}; use wan_development")),
    }
}

/// Parses a duration; a bare number is in milliseconds.
fn duration(value: &str) -> Result<Duration, String> {
    let bare = value.chars().all(|c| c.is_ascii_digit() || c == '.');
    let parsed = match bare {
        true => steadfast::duration::parse(&format!("{value}ms")),
        false => steadfast::duration::parse(value),
    };
    match parsed {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err(format!("is longer than a year: {value:?}")),
        None => Err(format!(
            "is not a duration: {value:?}; write 2500ms or 2.5s"
        )),
    }
}

fn switch(value: &str) -> Result<bool, String> {
    match value {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        other => Err(format!("is neither true nor false: {other:?}")),
    }
}

fn compression(value: &str) -> Result<Compression, String> {
    Ok(match switch(value)? {
        true => Compression::default(),
        false => Compression::Off,
    })
}

fn network(value: &str) -> Result<Network, String> {
    Ok(match text(value)? {
        "auto" => Network::Auto,
        "default" => Network::Default,
        name => Network::Named(name.to_owned()),
    })
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    Some(value)
        .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("is not a number in its range: {value:?}"))
}

fn text(value: &str) -> Result<&str, String> {
    match value {
        "" => Err("is empty".into()),
        value => Ok(value),
    }
}

/// The known name that differs least, if it differs by little.
fn nearest(name: &str) -> Option<&'static str> {
    // A text of any length may have come in; a long one is like none of these.
    if name.len() > 64 {
        return None;
    }
    let names = ALL.iter().flat_map(|known| known.names.iter().copied());
    let distances = names.map(|known| (strsim::damerau_levenshtein(name, known), known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + known.len() / 4).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_milliseconds() {
        for (text, micros) in [
            ("2500", 2_500_000),
            ("0.5", 500),
            ("2.5s", 2_500_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for text in ["", "s", "-1s", ".5", "1.", "1e3", "1m30", "1.2.3"] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("is not a duration"), "{text}: {error}");
        }
        for text in ["9000h", "18446744073709551615h", "99999999999999999999999s"] {
            let error = duration(text).unwrap_err();
            assert!(error.contains("longer than a year"), "{text}: {error}");
        }
    }
}
