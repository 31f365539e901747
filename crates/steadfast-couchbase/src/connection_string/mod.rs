//! Connection strings: the address of a cluster in one line.
//!
//! ```text
//! couchbases://db1.example.com,db2.example.com:11207,[2001:db8::1]/travel?kv_timeout=1s
//! scheme       hosts, each with or without a port                 bucket  options
//! ```
//!
//! People type the string by hand, and no compiler checks it. So nothing in it is
//! guessed, ignored or corrected: an unknown part is an error that names it and, if
//! possible, suggests what was meant.

mod host;
mod known;

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

pub use host::Host;

use crate::config_error::ConfigError;
use crate::options::ClusterOptions;
use known::Known;

/// A connection string that was read.
///
/// ```
/// use std::time::Duration;
/// use steadfast_couchbase::{ClusterOptions, ConnectionString};
///
/// let string = ConnectionString::parse("couchbases://db1,db2:12207/travel?kv_timeout=1s")?;
/// assert!(string.is_tls());
/// assert_eq!(string.bucket(), Some("travel"));
/// let addresses: Vec<_> = string.addresses().collect();
/// assert_eq!(addresses, [("db1", 11207), ("db2", 12207)]);
///
/// let mut options = ClusterOptions::default();
/// string.apply_to(&mut options);
/// assert_eq!(options.kv_timeout, Duration::from_secs(1));
/// # Ok::<(), steadfast_couchbase::ConfigError>(())
/// ```
///
/// # Options
///
/// Durations have a unit (`us`, `ms`, `s`, `m`, `h`), and are milliseconds without
/// one. Switches are `true` or `false`, `on` or `off`, `1` or `0`.
///
/// | option | value |
/// |---|---|
/// | `kv_timeout`, `kv_durable_timeout`, `connect_timeout`, `query_timeout`, `analytics_timeout`, `search_timeout`, `view_timeout`, `management_timeout` | duration |
/// | `idle_http_timeout`, `config_poll_interval` | duration |
/// | `network` | `auto`, `default`, or a name such as `external` |
/// | `compression`, `dns_srv`, `config_push`, `server_durations`, `mutation_tokens` | switch |
/// | `kv_connections`, `max_in_flight`, `max_idle_http_connections` | number |
/// | `profile` | `wan_development`; the other options replace its own |
/// | `tls_verify` | `peer` or `none` |
/// | `trust_certificate` | path of a PEM file |
/// | `user_agent_extra` | text |
///
/// Names that other Couchbase clients have for the same are understood too, such
/// as `bootstrap_timeout`, `key_value_timeout`, `enable_dns_srv` or
/// `num_kv_connections`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionString {
    tls: bool,
    hosts: Vec<Host>,
    bucket: Option<String>,
    options: Vec<(&'static Known, String)>,
}

/// The key-value port without TLS.
const PORT: u16 = 11210;
/// The key-value port with TLS.
const TLS_PORT: u16 = 11207;

/// The longest name that a bucket can have.
const LONGEST_BUCKET: usize = 100;

impl ConnectionString {
    /// Reads a connection string.
    ///
    /// # Errors
    /// If any part of it is invalid. The error names the part; it repeats no
    /// text that could be a secret.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let (tls, rest) = scheme(text.trim())?;
        let (rest, options) = split_once(rest, '?');
        // A password may have a slash in it, and its @ may be encoded.
        if has_at(rest) {
            return Err(ConfigError::new("host", HAS_AT));
        }
        let (hosts, path) = split_once(rest, '/');
        Ok(Self {
            tls,
            hosts: read_hosts(hosts)?,
            bucket: path.map(read_bucket).transpose()?.flatten(),
            options: read_options(options.unwrap_or_default(), tls)?,
        })
    }

    /// Reads a connection string, and validates the options after applying it.
    pub(crate) fn parse_with(
        text: &str,
        options: &mut ClusterOptions,
    ) -> Result<Self, ConfigError> {
        let string = Self::parse(text)?;
        string.apply_to(options);
        options.validate()?;
        Ok(string)
    }

    /// The hosts, in the order in which they are written; at least one.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The hosts with their ports, the scheme's own where none is written.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, u16)> {
        let default = self.default_port();
        self.hosts
            .iter()
            .map(move |host| (host.name(), host.port().unwrap_or(default)))
    }

    /// Whether the connections use TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The key-value port of hosts without one.
    pub fn default_port(&self) -> u16 {
        if self.tls { TLS_PORT } else { PORT }
    }

    /// The bucket, if one is named.
    pub fn bucket(&self) -> Option<&str> {
        self.bucket.as_deref()
    }

    /// Applies the options of the string; the others keep their values. So an operator
    /// can override the program.
    pub fn apply_to(&self, options: &mut ClusterOptions) {
        let (profile, single): (Vec<_>, Vec<_>) = self
            .options
            .iter()
            .partition(|(known, _)| known.is_profile());
        for (known, value) in profile.into_iter().chain(single) {
            known
                .set(options, value)
                .expect("every value was read when the string was");
        }
    }

    fn scheme(&self) -> &'static str {
        if self.tls { "couchbases" } else { "couchbase" }
    }
}

impl fmt::Display for ConnectionString {
    /// A string that reads as the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        for (index, host) in self.hosts.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        if let Some(bucket) = &self.bucket {
            write!(f, "/{}", utf8_percent_encode(bucket, ESCAPED))?;
        }
        for (index, (known, value)) in self.options.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            let value = utf8_percent_encode(value, ESCAPED);
            write!(f, "{mark}{}={value}", known.name())?;
        }
        Ok(())
    }
}

impl std::str::FromStr for ConnectionString {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::parse(text)
    }
}

/// Characters with a meaning of their own inside a value.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'/')
    .add(b'=')
    .add(b'?')
    .add(b'#');

fn scheme(text: &str) -> Result<(bool, &str), ConfigError> {
    let wrong = |problem: String| Err(ConfigError::new("scheme", problem));
    let Some((scheme, rest)) = text.split_once("://") else {
        return wrong("is missing: write couchbase://host, or couchbases://host for TLS".into());
    };
    match scheme.to_ascii_lowercase().as_str() {
        "couchbase" => Ok((false, rest)),
        "couchbases" => Ok((true, rest)),
        "http" => wrong("http:// is not how clients connect: write couchbase://".into()),
        "https" => wrong("https:// is not how clients connect: write couchbases://".into()),
        "couchbase2" => wrong(
            "couchbase2:// is a gateway's, which this client does not speak to: \
             write couchbase:// or couchbases://"
                .into(),
        ),
        _ => wrong(format!(
            "{scheme:?} is neither couchbase nor couchbases, the one for TLS"
        )),
    }
}

const HAS_AT: &str = "has an @ in it; pass user and password as Credentials instead";

/// Returns whether the text has an `@`, plain, or percent-encoded once or twice.
fn has_at(text: &str) -> bool {
    text.contains('@')
        || text
            .to_ascii_lowercase()
            .replace("%25", "%")
            .contains("%40")
}

fn read_hosts(text: &str) -> Result<Vec<Host>, ConfigError> {
    if text.is_empty() {
        return Err(ConfigError::new("host", "is missing"));
    }
    let hosts: Vec<&str> = text.split([',', ';']).collect();
    let read = |(index, host): (usize, &&str)| {
        let part = match hosts.len() {
            1 => "host".to_owned(),
            _ => format!("host {}", index + 1),
        };
        Host::parse(host).map_err(|problem| ConfigError::new(part, problem))
    };
    hosts.iter().enumerate().map(read).collect()
}

/// A lone slash names no bucket.
fn read_bucket(path: &str) -> Result<Option<String>, ConfigError> {
    let wrong = |problem: String| Err(ConfigError::new("bucket", problem));
    let name = decode("bucket", path)?;
    let odd = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-' | '%');
    match name.chars().find(odd) {
        Some(odd) => wrong(format!("has {odd:?} in its name, which no bucket has")),
        None if name.len() > LONGEST_BUCKET => {
            wrong(format!("has a name longer than {LONGEST_BUCKET} bytes"))
        }
        None => Ok(Some(name).filter(|name| !name.is_empty())),
    }
}

/// Reads the options, and tries each out, so that using them later cannot fail.
fn read_options(text: &str, tls: bool) -> Result<Vec<(&'static Known, String)>, ConfigError> {
    let mut options: Vec<(&'static Known, String)> = Vec::new();
    for option in text.split('&').filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if has_at(name) {
            return Err(ConfigError::new("host", HAS_AT));
        }
        let name = decode("name of an option", name)?;
        let part = format!("option {name}");
        let value = decode(&part, value)?;
        let wrong = |problem| ConfigError::new(part.clone(), problem);
        let known = Known::find(&name).map_err(wrong)?;
        if let Some((twin, _)) = options.iter().find(|(other, _)| *other == known) {
            return Err(wrong(match twin.name() {
                same if same == name => "is there twice".to_owned(),
                other => format!("is there twice; it is another name of {other}"),
            }));
        }
        if known.needs_tls() && !tls {
            return Err(wrong(
                "has no meaning without TLS: use couchbases://".into(),
            ));
        }
        try_out(known, &value).map_err(wrong)?;
        options.push((known, value));
    }
    Ok(options)
}

fn try_out(known: &Known, value: &str) -> Result<(), String> {
    let mut options = ClusterOptions::default();
    known.set(&mut options, value)?;
    options
        .validate()
        .map_err(|error| error.problem().to_owned())
}

fn decode(part: &str, text: &str) -> Result<String, ConfigError> {
    match percent_decode_str(text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(ConfigError::new(
            part.to_owned(),
            "is not UTF-8 when decoded",
        )),
    }
}

fn split_once(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests;
