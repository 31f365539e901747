//! Where a document is: `couchbase://host/bucket/scope/collection`.
//!
//! A connection string names a bucket at most. The command line goes on in the same
//! way, so that one word says it all, and a connection string is an address already.

use std::fmt;
use std::str::FromStr;

use steadfast_couchbase::{Bucket, Cluster, Collection, ConnectionString};

/// An address: a connection string, and perhaps a scope and a collection.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    /// The address without scope and collection.
    pub(crate) string: ConnectionString,
    pub(crate) scope: Option<String>,
    pub(crate) collection: Option<String>,
}

/// How an address is written; part of help texts and errors.
pub(crate) const FORM: &str = "couchbase://host[:port]/bucket[/scope/collection]";

impl Address {
    /// The bucket.
    ///
    /// # Errors
    /// If none is named.
    pub(crate) fn bucket(&self, cluster: &Cluster) -> anyhow::Result<Bucket> {
        Ok(cluster.bucket(self.bucket_name()?))
    }

    /// The name of the bucket.
    ///
    /// # Errors
    /// If none is named.
    pub(crate) fn bucket_name(&self) -> anyhow::Result<&str> {
        match self.string.bucket() {
            Some(name) => Ok(name),
            None => Err(crate::exit::usage(format_args!(
                "which bucket? an address is {FORM}"
            ))),
        }
    }

    /// The collection, the default one if none is named.
    ///
    /// # Errors
    /// If no bucket is named, or a scope without a collection.
    pub(crate) fn collection(&self, cluster: &Cluster) -> anyhow::Result<Collection> {
        let bucket = self.bucket(cluster)?;
        Ok(match self.collection_path()? {
            Some((scope, collection)) => bucket.collection(&scope, &collection),
            None => bucket.default_collection(),
        })
    }

    /// The scope and the collection, none for the default one.
    ///
    /// # Errors
    /// If a scope is named without a collection.
    pub(crate) fn collection_path(&self) -> anyhow::Result<Option<(String, String)>> {
        match (&self.scope, &self.collection) {
            (Some(scope), Some(collection)) => Ok(Some((scope.clone(), collection.clone()))),
            (Some(scope), None) => Err(crate::exit::usage(format_args!(
                "which collection of the scope {scope:?}? an address is {FORM}"
            ))),
            (None, _) => Ok(None),
        }
    }
}

impl fmt::Display for Address {
    /// As it was written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let string = self.string.to_string();
        let (front, options) = match string.split_once('?') {
            Some((front, options)) => (front, Some(options)),
            None => (&*string, None),
        };
        f.write_str(front)?;
        for name in self.scope.iter().chain(&self.collection) {
            write!(f, "/{name}")?;
        }
        options.map_or(Ok(()), |options| write!(f, "?{options}"))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (front, options) = match text.split_once('?') {
            Some((front, options)) => (front, Some(options)),
            None => (text, None),
        };
        let begin = front.find("://").map_or(0, |at| at + "://".len());
        let mut names = front[begin..].trim_end_matches('/').split('/').skip(1);
        let (bucket, scope, collection) = (names.next(), names.next(), names.next());
        if names.next().is_some() {
            return Err(format!("has more parts than {FORM}"));
        }
        if [bucket, scope, collection].contains(&Some("")) {
            return Err(format!("has an empty part; it is {FORM}"));
        }
        let hosts = front[begin..].split('/').next().unwrap_or_default();
        let mut string = format!("{}{hosts}", &front[..begin]);
        if let Some(bucket) = bucket {
            string.push('/');
            string.push_str(bucket);
        }
        if let Some(options) = options {
            string.push('?');
            string.push_str(options);
        }
        let string = ConnectionString::parse(&string).map_err(|error| error.to_string())?;
        let (scope, collection) = (scope.map(str::to_owned), collection.map(str::to_owned));
        Ok(Self {
            string,
            scope,
            collection,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Option<String>, Option<String>) {
        let address: Address = text.parse().unwrap();
        (
            address.string.to_string(),
            address.scope,
            address.collection,
        )
    }

    #[test]
    fn an_address_is_a_connection_string_with_two_more_parts() {
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
            let again = text.parse::<Address>().unwrap().to_string();
            assert_eq!(again, text.trim_end_matches('/'));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_what_is_wrong() {
        for (text, problem) in [
            ("a/b", "scheme"),
            ("couchbase://a/t/s/c/d", "more parts"),
            ("couchbase://a//s/c", "empty part"),
            ("couchbase://a/t?nonsense=1", "nonsense"),
            ("http://a/t", "couchbase://"),
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
