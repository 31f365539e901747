//! Addresses of documents: `couchbase://host/bucket/scope/collection`.
//!
//! A connection string names at most a bucket. An address continues it with scope and
//! collection, so that one argument is enough, and every connection string is an address.

use std::fmt;
use std::str::FromStr;

use steadfast_couchbase::{Bucket, Cluster, Collection, ConnectionString};

use crate::exit::usage;

/// A connection string with an optional scope and collection.
#[derive(Clone, Debug)]
pub(crate) struct ClusterAddress {
    /// The address without scope and collection.
    pub(crate) string: ConnectionString,
    pub(crate) scope: Option<String>,
    pub(crate) collection: Option<String>,
}

/// The syntax of an address, for help texts and errors.
const SYNTAX: &str = "couchbase://host[:port]/bucket[/scope/collection]";

impl ClusterAddress {
    /// Returns the bucket, or a usage error if the address has none.
    pub(crate) fn bucket(&self, cluster: &Cluster) -> anyhow::Result<Bucket> {
        Ok(cluster.bucket(self.bucket_name()?))
    }

    /// Returns the name of the bucket, or a usage error if the address has none.
    pub(crate) fn bucket_name(&self) -> anyhow::Result<&str> {
        let missing = || usage(format_args!("the address has no bucket: write {SYNTAX}"));
        self.string.bucket().ok_or_else(missing)
    }

    /// Returns the collection, which is the default collection if the address has none.
    ///
    /// # Errors
    /// If the address has no bucket, or a scope without a collection.
    pub(crate) fn collection(&self, cluster: &Cluster) -> anyhow::Result<Collection> {
        let bucket = self.bucket(cluster)?;
        Ok(match self.collection_path()? {
            Some((scope, collection)) => bucket.collection(&scope, &collection),
            None => bucket.default_collection(),
        })
    }

    /// Returns scope and collection; none for the default collection.
    ///
    /// # Errors
    /// If the address has a scope without a collection.
    pub(crate) fn collection_path(&self) -> anyhow::Result<Option<(String, String)>> {
        match (&self.scope, &self.collection) {
            (Some(scope), Some(collection)) => Ok(Some((scope.clone(), collection.clone()))),
            (Some(scope), None) => Err(usage(format_args!(
                "the address has the scope {scope:?} and no collection: write {SYNTAX}"
            ))),
            (None, _) => Ok(None),
        }
    }
}

impl fmt::Display for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let string = self.string.to_string();
        let (front, options) = string.split_once('?').unwrap_or((&string, ""));
        f.write_str(front)?;
        for name in self.scope.iter().chain(&self.collection) {
            write!(f, "/{name}")?;
        }
        match options {
            "" => Ok(()),
            options => write!(f, "?{options}"),
        }
    }
}

impl FromStr for ClusterAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let options = text.find('?').unwrap_or(text.len());
        let (front, options) = text.split_at(options);
        let hosts = front.find("://").map_or(0, |at| at + "://".len());
        let path = front[hosts..]
            .find('/')
            .map_or(front.len(), |at| hosts + at);
        let mut names = front[path..].trim_end_matches('/').split('/').skip(1);
        let (bucket, scope, collection) = (names.next(), names.next(), names.next());
        if names.next().is_some() {
            return Err(format!("has too many parts: write {SYNTAX}"));
        }
        if [bucket, scope, collection].contains(&Some("")) {
            return Err(format!("has an empty part: write {SYNTAX}"));
        }
        let bucket = bucket.map_or_else(String::new, |bucket| format!("/{bucket}"));
        let string = format!("{}{bucket}{options}", &front[..path]);
        Ok(Self {
            string: ConnectionString::parse(&string).map_err(|error| error.to_string())?,
            scope: scope.map(str::to_owned),
            collection: collection.map(str::to_owned),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, Option<String>) {
        let address: ClusterAddress = text.parse().unwrap();
        (
            address.string.to_string(),
            address.scope,
            address.collection,
        )
    }

    #[test]
    fn an_address_is_a_connection_string_with_scope_and_collection() {
        for (text, string, scope, collection) in [
            ("couchbase://a", "couchbase://a", None, None),
            ("couchbase://a/", "couchbase://a", None, None),
            ("couchbase://a,b:1/t", "couchbase://a,b:1/t", None, None),
            ("couchbases://a/t/s", "couchbases://a/t", Some("s"), None),
            (
                "couchbase://[::1]:5/t/s/c?kv_timeout=1s",
                "couchbase://[::1]:5/t?kv_timeout=1s",
                Some("s"),
                Some("c"),
            ),
        ] {
            let expected = (
                string.to_owned(),
                scope.map(str::to_owned),
                collection.map(str::to_owned),
            );
            assert_eq!(parts(text), expected, "{text}");
            let again = text.parse::<ClusterAddress>().unwrap().to_string();
            assert_eq!(again, text.trim_end_matches('/'));
        }
    }

    #[test]
    fn invalid_addresses_are_rejected_with_the_problem() {
        for (text, problem) in [
            ("a/b", "scheme"),
            ("couchbase://a/t/s/c/d", "too many parts"),
            ("couchbase://a//s/c", "empty part"),
            ("couchbase://a/t?nonsense=1", "nonsense"),
            ("http://a/t", "couchbase://"),
        ] {
            let error = text.parse::<ClusterAddress>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
