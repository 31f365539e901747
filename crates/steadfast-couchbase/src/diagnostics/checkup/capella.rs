//! Advice for clusters of Couchbase Capella, whose usual mistakes differ from those
//! of other clusters.
//!
//! Capella drops connections from addresses that are not allowed, and turns idle
//! clusters off. Both look like a firewall. Its database users are not the users of
//! its web console.

use super::{CheckResult, Checkup, Finding};

/// The domain of all clusters of Capella.
const DOMAIN: &str = ".cloud.couchbase.com";

impl Checkup {
    /// Adds Capella's usual mistakes to the advice on a failure, if the connection
    /// string names a cluster of Capella.
    pub(super) fn add_capella(&self, mut finding: Finding) -> Finding {
        let named = |host: &crate::connection_string::Host| is_capella(host.name());
        if finding.outcome != CheckResult::Fails || !self.string.hosts().iter().any(named) {
            return finding;
        }
        let own_ca = !self.options.tls.authorities.is_empty();
        if let Some(hint) = hint(finding.step, self.string.is_tls(), own_ca) {
            let advice = finding.advice.take();
            finding.advice = Some(match advice {
                Some(advice) => format!("{hint}. Otherwise: {advice}"),
                None => hint.to_owned(),
            });
        }
        finding
    }
}

fn is_capella(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host.ends_with(DOMAIN)
}

/// Returns what to check first on Capella when this step fails.
fn hint(step: &str, tls: bool, own_ca: bool) -> Option<&'static str> {
    Some(match step {
        "name" => {
            "on Capella: copy the connection string from the page Connect of the cluster; \
             a deleted cluster has no address"
        }
        "connect" | "TLS" | "authenticate" if !tls => {
            "on Capella: write couchbases://, because every connection needs TLS"
        }
        "connect" => {
            "on Capella: allow the public address of this machine (Settings, Allowed IP \
             Addresses), and check that the cluster is turned on: Capella drops connections \
             from other addresses, and a paused cluster does not respond"
        }
        "TLS" if own_ca => {
            "on Capella: name no certificate to trust, the client has Capella's root"
        }
        "TLS" => {
            "on Capella: check that the cluster is turned on, and that the public address of \
             this machine is allowed (Settings, Allowed IP Addresses)"
        }
        "authenticate" => {
            "on Capella: use the credentials of a cluster access user (Settings, Cluster \
             Access), not those of the web console"
        }
        "bucket" => {
            "on Capella: give the cluster access user rights on the bucket (Settings, Cluster \
             Access)"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use crate::options::ClusterOptions;

    fn advice(string: &str, step: &'static str) -> String {
        let credentials = Credentials::password("app", "secret");
        let checkup = Checkup::new(string, credentials, ClusterOptions::new()).unwrap();
        let finding = checkup.add_capella(Finding::fails(step, "it fails", "look around"));
        finding.advice.unwrap()
    }

    #[test]
    fn the_usual_mistakes_are_named_for_clusters_of_capella_alone() {
        let on = "couchbases://cb.abc.cloud.couchbase.com";
        for (string, step, expected) in [
            (on, "name", "page Connect"),
            (on, "connect", "Allowed IP Addresses"),
            (on, "connect", "turned on"),
            (on, "TLS", "turned on"),
            (on, "authenticate", "not those of the web console"),
            (on, "bucket", "rights on the bucket"),
            (
                "couchbases://CB.abc.Cloud.Couchbase.com.",
                "connect",
                "Allowed IP",
            ),
            (
                "couchbase://cb.abc.cloud.couchbase.com",
                "connect",
                "couchbases://",
            ),
            (
                "couchbases://cb.abc.cloud.couchbase.com?trust_certificate=/ca.pem",
                "TLS",
                "no certificate",
            ),
        ] {
            let advice = advice(string, step);
            assert!(advice.contains(expected), "{string} {step}: {advice}");
            assert!(advice.ends_with("Otherwise: look around"), "{advice}");
        }
        for other in [
            "couchbases://db.example.com",
            "couchbases://cloud.couchbase.com.example.com",
        ] {
            assert_eq!(advice(other, "connect"), "look around");
        }
        // A service that fails has nothing to do with Capella.
        assert_eq!(advice(on, "query"), "look around");
    }

    /// The name has no address, with or without a network.
    #[tokio::test]
    async fn a_checkup_of_a_cluster_that_capella_does_not_have_says_where_its_name_is() {
        let options = ClusterOptions::new().connect_timeout(std::time::Duration::from_secs(2));
        let string = "couchbases://no-such.invalid.cloud.couchbase.com?dns_srv=off";
        let credentials = Credentials::password("app", "secret");
        let checkup = Checkup::new(string, credentials, options).unwrap();
        let findings = checkup.run(|_| {}).await.unwrap();
        let advice = findings[0].advice.as_ref().unwrap();
        assert!(advice.contains("page Connect"), "{advice}");
    }
}
