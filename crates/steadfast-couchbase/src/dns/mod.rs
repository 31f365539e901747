//! DNS SRV records: one name for a cluster whose nodes change.
//!
//! A connection string with a single name and no port may name no host at all,
//! but a record that lists the hosts: `_couchbases._tcp.db.example.com`, or
//! `_couchbase._tcp…` without TLS. Only a lookup tells. Most names have no such
//! record, and some networks do not answer, so a failed lookup is not an error: the
//! name is then used as a host.

mod renew;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

#[cfg(feature = "dns")]
use hickory_resolver::{TokioResolver, net::NetError as LookupError, proto::rr::RData};
#[cfg(not(feature = "dns"))]
use std::io::Error as LookupError;
use tracing::{debug, info};

use crate::connection_string::ConnectionString;
use crate::options::ClusterOptions;
use crate::topology::Address;

pub(crate) use renew::Seeds;

/// The largest number of hosts used; they know the others.
const MOST_HOSTS: usize = 64;

/// However patient the caller is, a name server that takes longer will not answer.
const LONGEST_LOOKUP: Duration = Duration::from_secs(5);

/// One line of an SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SrvTarget {
    /// The lower come first.
    pub(crate) priority: u16,
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A resolver of SRV records.
pub(crate) trait SrvLookup: Send + Sync {
    /// The lines of the record with this name, or why there are none.
    fn lookup<'a>(&'a self, name: &'a str) -> SrvFuture<'a>;
}

/// A running lookup.
pub(crate) type SrvFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<SrvTarget>, LookupError>> + Send + 'a>>;

/// Asks the name servers that the machine is set up with.
#[derive(Debug)]
pub(crate) struct SystemDns;

/// The hosts to start from: from the SRV record if the string may name one
/// and it exists, else from the string.
///
/// Takes at most half of the connect timeout, so that the other half is left for
/// connecting.
///
/// Cancel-safe: dropping the future abandons the lookup.
pub(crate) async fn seeds(
    string: &ConnectionString,
    options: &ClusterOptions,
    dns: &dyn SrvLookup,
) -> Vec<Address> {
    if let Some(found) = look_up(string, options, dns).await {
        return found;
    }
    let written = string.addresses();
    written
        .map(|(host, port)| Address::new(host, port))
        .collect()
}

/// The hosts of the SRV record, if the string may name one and it exists.
///
/// Cancel-safe: dropping the future abandons the lookup.
async fn look_up(
    string: &ConnectionString,
    options: &ClusterOptions,
    dns: &dyn SrvLookup,
) -> Option<Vec<Address>> {
    let name = srv_name(string).filter(|_| options.dns_srv)?;
    let limit = (options.connect_timeout / 2).min(LONGEST_LOOKUP);
    let found = match tokio::time::timeout(limit, dns.lookup(&name)).await {
        Ok(Ok(targets)) => in_order(targets),
        Ok(Err(error)) => {
            debug!(name, %error, "no DNS SRV record");
            return None;
        }
        Err(_) => {
            debug!(name, ?limit, "no answer to the DNS SRV lookup");
            return None;
        }
    };
    if found.is_empty() {
        debug!(name, "the DNS SRV record has no hosts");
        return None;
    }
    info!(name, hosts = found.len(), "hosts found by DNS SRV");
    Some(found)
}

/// The name of the record, if the string may mean one.
pub(crate) fn srv_name(string: &ConnectionString) -> Option<String> {
    match string.hosts() {
        [host] if host.port().is_none() && host.ip().is_none() => {
            let service = if string.is_tls() {
                "couchbases"
            } else {
                "couchbase"
            };
            Some(format!("_{service}._tcp.{}", host.name()))
        }
        _ => None,
    }
}

/// The usable ones, the most preferred first. Weights are not looked at: every
/// host that answers tells of all nodes, so there is no load to spread.
fn in_order(mut targets: Vec<SrvTarget>) -> Vec<Address> {
    targets.sort_by_key(|target| target.priority);
    let mut seeds: Vec<Address> = Vec::new();
    for SrvTarget { host, port, .. } in targets {
        let seed = Address::new(host.strip_suffix('.').unwrap_or(&host), port);
        // The host "." says that the service is decidedly not there (RFC 2782).
        if !seed.host.is_empty() && port != 0 && !seeds.contains(&seed) {
            seeds.push(seed);
        }
        if seeds.len() == MOST_HOSTS {
            break;
        }
    }
    seeds
}

#[cfg(not(feature = "dns"))]
impl SrvLookup for SystemDns {
    fn lookup<'a>(&'a self, _: &'a str) -> SrvFuture<'a> {
        let problem = "the client was built without its feature dns";
        let unsupported = LookupError::new(std::io::ErrorKind::Unsupported, problem);
        Box::pin(std::future::ready(Err(unsupported)))
    }
}

#[cfg(feature = "dns")]
impl SrvLookup for SystemDns {
    fn lookup<'a>(&'a self, name: &'a str) -> SrvFuture<'a> {
        // Lookups are rare, and the machine's settings may have changed since the
        // last one, so the resolver is not kept.
        Box::pin(async move { ask(&TokioResolver::builder_tokio()?.build()?, name).await })
    }
}

/// Cancel-safe: dropping the future abandons the lookup.
#[cfg(feature = "dns")]
async fn ask(resolver: &TokioResolver, name: &str) -> Result<Vec<SrvTarget>, LookupError> {
    let lookup = resolver.srv_lookup(name).await?;
    let target = |data: &RData| match data {
        RData::SRV(srv) => Some(SrvTarget {
            priority: srv.priority,
            host: srv.target.to_ascii(),
            port: srv.port,
        }),
        _ => None,
    };
    Ok(lookup
        .answers()
        .iter()
        .filter_map(|record| target(&record.data))
        .collect())
}

#[cfg(test)]
#[cfg(feature = "dns")]
mod tests;
