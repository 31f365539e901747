//! A host of a connection string.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::topology::write_host;

/// A name or an address, and perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// The longest name that DNS can have.
const LONGEST_NAME: usize = 253;

/// The ports of the management service, which people write by mistake.
const MANAGEMENT_PORTS: [u16; 2] = [8091, 18091];

impl Host {
    /// The name or the address; an IPv6 address has no brackets here.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port, if one is written.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The address, if it is one and not a name.
    pub fn ip(&self) -> Option<IpAddr> {
        self.name.parse().ok()
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or("has no closing bracket")?;
                let address: Ipv6Addr = address
                    .parse()
                    .map_err(|_| "has brackets, but no valid IPv6 address in them")?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':').ok_or("goes on after its bracket")?),
                };
                (address.to_string(), port)
            }
            None => {
                let (name, port) = match text.split_once(':') {
                    Some((name, port)) => (name, Some(port)),
                    None => (text, None),
                };
                if port.is_some_and(|port| port.contains(':')) {
                    return Err("has several colons; an IPv6 address is put in brackets".into());
                }
                check_name(name)?;
                (name.to_owned(), port)
            }
        };
        let port = port.map(read_port).transpose()?;
        Ok(Self { name, port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_host(f, &self.name, self.port)
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("is empty".into());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!("is longer than {LONGEST_NAME} bytes"));
    }
    let odd = |c: &char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '_');
    if let Some(odd) = name.chars().find(odd) {
        return Err(format!("has {odd:?} in its name"));
    }
    // A name is made of labels, and only the last dot may have none behind it.
    let labels = name.strip_suffix('.').unwrap_or(name);
    if labels
        .split('.')
        .any(|label| label.is_empty() || label.len() > 63)
    {
        return Err("has a label that is empty or longer than 63 bytes".into());
    }
    // What consists of numbers only is meant as an address (and would be looked up
    // as a name of a top-level domain that does not exist).
    let last = labels.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|byte| byte.is_ascii_digit()) && name.parse::<Ipv4Addr>().is_err() {
        return Err("is not an IPv4 address".into());
    }
    Ok(())
}

/// Reads a port, with an optional purpose as in old connection strings: `11210=mcd`. The
/// text may be part of a password by mistake, so no error repeats it.
fn read_port(text: &str) -> Result<u16, String> {
    let (port, purpose) = match text.split_once('=') {
        Some((port, purpose)) => (port, Some(purpose)),
        None => (text, None),
    };
    let number: u16 = Some(port)
        .filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|port| port.parse().ok())
        .filter(|port| *port != 0)
        .ok_or("has an invalid port: write a number from 1 to 65535")?;
    match purpose {
        None | Some("mcd" | "cccp") if MANAGEMENT_PORTS.contains(&number) => Err(format!(
            "has port {number}, which is the management service's: leave it out, or write the \
             key-value port"
        )),
        None | Some("mcd" | "cccp") => Ok(number),
        Some("http" | "manager") => {
            Err("has the port of the management service: leave it out".into())
        }
        Some(_) => Err("has a port with an unknown purpose".into()),
    }
}
