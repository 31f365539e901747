//! Buckets, collections, users and documents that a cluster starts with.
//!
//! Everything is read and checked before the cluster starts, so that a mistake in a file is an
//! error of the command line.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use serde_json::{Map, Value, json};
use steadfast_cluster::users::{Rights, check_name};
use steadfast_cluster::{BucketSettings, TestCluster, TestClusterBuilder};

use crate::exit::{refuse, usage};
use crate::files;

/// The scope and the collection that every bucket has.
const DEFAULT: &str = "_default";

/// The administrator of a cluster that has no other.
const ADMINISTRATOR: &str = "Administrator:password";

/// Flags for the contents.
#[derive(Args)]
pub(super) struct ContentArgs {
    /// Bucket to create; repeatable
    #[arg(long = "bucket", default_values_t = [String::from("default")], value_name = "NAME")]
    buckets: Vec<String>,
    /// Number of replicas of each bucket
    #[arg(long, default_value_t = 1)]
    replicas: usize,
    /// Number of vbuckets of each bucket
    #[arg(long, default_value_t = 1024)]
    vbuckets: u16,
    /// Scope to create in each bucket; repeatable
    #[arg(long = "scope", value_name = "NAME")]
    scopes: Vec<String>,
    /// Collection to create in each bucket, with its scope; repeatable. Without SCOPE it is in
    /// the scope of --scope, or in the default scope
    #[arg(long = "collection", value_name = "[SCOPE.]NAME")]
    collections: Vec<String>,
    /// User of the cluster; repeatable. Without roles it is an administrator. The first one is
    /// the login that a command gets
    #[arg(long = "user", default_values_t = [String::from(ADMINISTRATOR)], value_name = "NAME:PASSWORD[:ROLES]")]
    users: Vec<String>,
    /// JSON file of documents by key, to store at the start; repeatable. Without BUCKET they go
    /// to the default collection of the first bucket
    #[arg(long, value_name = "[BUCKET[/SCOPE/COLLECTION]=]FILE")]
    load: Vec<String>,
}

/// The checked contents.
pub(super) struct Contents {
    pub(super) buckets: Vec<String>,
    replicas: usize,
    vbuckets: u16,
    scopes: Vec<String>,
    /// The scope and the name of each collection.
    pub(super) collections: Vec<(String, String)>,
    pub(super) users: Vec<User>,
    loads: Vec<Load>,
}

/// A user as `--user` writes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
    /// None for an administrator.
    pub(crate) roles: Option<String>,
}

/// Documents for a collection.
struct Load {
    bucket: String,
    /// `scope.collection`.
    collection: String,
    documents: Map<String, Value>,
}

impl Contents {
    /// Reads the flags and the files that they name.
    ///
    /// # Errors
    /// If a flag or a file is invalid.
    pub(super) fn read(args: &ContentArgs) -> anyhow::Result<Self> {
        let users = args.users.iter().map(|text| User::parse(text));
        let mut users = users.collect::<Result<Vec<_>, _>>()?;
        if users.iter().all(|user| user.roles.is_some()) {
            users.push(User::parse(ADMINISTRATOR)?);
        }
        let names: BTreeSet<&str> = users.iter().map(|user| user.name.as_str()).collect();
        if names.len() < users.len() {
            refuse!(
                "two users have the same name; without a --user that has no roles, the cluster \
                 adds Administrator"
            );
        }
        let mut scopes = args.scopes.clone();
        let mut collections = Vec::new();
        for text in &args.collections {
            let (scope, name) = match (text.split_once('.'), scopes.as_slice()) {
                (Some((scope, name)), _) => (scope.to_owned(), name),
                (None, []) => (DEFAULT.to_owned(), text.as_str()),
                (None, [scope]) => (scope.clone(), text.as_str()),
                (None, _) => {
                    refuse!("the scope of --collection {text} is not clear: write SCOPE.{text}")
                }
            };
            collections.push((scope, name.to_owned()));
        }
        for (scope, _) in &collections {
            if scope != DEFAULT && !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        let mut contents = Self {
            buckets: args.buckets.clone(),
            replicas: args.replicas,
            vbuckets: args.vbuckets,
            scopes,
            collections,
            users,
            loads: Vec::new(),
        };
        for text in &args.load {
            let load = contents.load(text)?;
            contents.loads.push(load);
        }
        Ok(contents)
    }

    /// Reads `[BUCKET[/SCOPE/COLLECTION]=]FILE`.
    fn load(&self, text: &str) -> anyhow::Result<Load> {
        let (target, path) = match text.split_once('=') {
            Some((target, path)) => (target, path),
            None => (self.buckets.first().map_or("", String::as_str), text),
        };
        let parts: Vec<&str> = target.split('/').collect();
        let (bucket, scope, collection) = match parts.as_slice() {
            [bucket] => (*bucket, DEFAULT, DEFAULT),
            [bucket, scope, collection] => (*bucket, *scope, *collection),
            _ => refuse!("invalid --load {text}: write [BUCKET[/SCOPE/COLLECTION]=]FILE"),
        };
        if !self.buckets.iter().any(|known| known == bucket) {
            refuse!("--load {text}: there is no bucket {bucket:?}; add --bucket {bucket}");
        }
        let known = |(s, c): &(String, String)| s == scope && c == collection;
        let is_default = (scope, collection) == (DEFAULT, DEFAULT);
        if !is_default && !self.collections.iter().any(known) {
            refuse!(
                "--load {text}: there is no collection {scope}.{collection}; add --collection \
                 {scope}.{collection}"
            );
        }
        Ok(Load {
            bucket: bucket.to_owned(),
            collection: format!("{scope}.{collection}"),
            documents: read_documents(Path::new(path))?,
        })
    }

    /// Adds the buckets and the administrators to a cluster that is to start.
    pub(super) fn add_to(&self, mut builder: TestClusterBuilder) -> TestClusterBuilder {
        for user in self.users.iter().filter(|user| user.roles.is_none()) {
            builder = builder.user(&user.name, &user.password);
        }
        for bucket in &self.buckets {
            let settings = BucketSettings::new(bucket);
            builder = builder.bucket(settings.replicas(self.replicas).vbuckets(self.vbuckets));
        }
        builder
    }

    /// Creates the rest in a cluster that has started.
    ///
    /// # Errors
    /// If a name is invalid, or a document does not fit.
    pub(super) fn fill(&self, cluster: &TestCluster) -> anyhow::Result<()> {
        for bucket in &self.buckets {
            for scope in &self.scopes {
                let created = cluster.create_scope(bucket, scope);
                created.map_err(|error| usage(format_args!("--scope {scope}: {error}")))?;
            }
            for (scope, name) in &self.collections {
                let created = cluster.create_collection(bucket, scope, name, 0);
                created.map_err(|error| usage(format_args!("--collection {name}: {error}")))?;
            }
        }
        for user in &self.users {
            if let Some(roles) = &user.roles {
                let put = cluster.put_user(&user.name, &user.password, roles);
                // The roles were read before, so the error is about what a role is limited to.
                put.map_err(|error| usage(format_args!("--user {}: {error}", user.name)))?;
            }
        }
        for load in &self.loads {
            for (key, value) in &load.documents {
                cluster.put_document(&load.bucket, &load.collection, key, value)?;
            }
        }
        Ok(())
    }

    /// The name and the password of the first user.
    pub(super) fn login(&self) -> (&str, &str) {
        let first = self.users.first();
        first.map_or(("", ""), |user| (&user.name, &user.password))
    }

    /// The number of documents at the start.
    pub(super) fn documents(&self) -> usize {
        self.loads.iter().map(|load| load.documents.len()).sum()
    }
}

/// Any part of an invalid user may be the password, so none is printed.
const INVALID_USER: &str = "invalid user: write NAME:PASSWORD[:ROLES], name and password not \
    empty, no control characters in the name, and roles such as data_reader[travel],data_writer[travel] \
    or admin; a password cannot contain a colon here";

impl User {
    /// Reads `NAME:PASSWORD[:ROLES]`.
    ///
    /// # Errors
    /// A usage error that does not contain the text.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let invalid = || usage(INVALID_USER);
        let (name, rest) = text.split_once(':').ok_or_else(invalid)?;
        let (password, roles) = match rest.split_once(':') {
            Some((password, roles)) => (password, Some(roles)),
            None => (rest, None),
        };
        let is_known = |roles: &str| !roles.is_empty() && Rights::from_roles(roles).is_ok();
        if check_name(name).is_err() || password.is_empty() || !roles.is_none_or(is_known) {
            return Err(invalid());
        }
        Ok(Self {
            name: name.to_owned(),
            password: password.to_owned(),
            roles: roles.map(str::to_owned),
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"username": self.name, "password": self.password, "roles": self.roles})
    }
}

/// Reads a file of documents by key.
fn read_documents(path: &Path) -> anyhow::Result<Map<String, Value>> {
    let name = path.display();
    let bytes = files::read(path, files::DOCUMENTS)?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(documents)) => Ok(documents),
        Ok(_) => refuse!("{name} is not a JSON object of documents by their keys"),
        Err(error) => refuse!("{name} is not JSON: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_password_and_roles_behind_colons() {
        let user = |name: &str, password: &str, roles: Option<&str>| User {
            name: name.to_owned(),
            password: password.to_owned(),
            roles: roles.map(str::to_owned),
        };
        for (text, wanted) in [
            ("a:b", user("a", "b", None)),
            ("a:b:admin", user("a", "b", Some("admin"))),
            (
                "a:b:data_reader[t:s:c],data_writer[t]",
                user("a", "b", Some("data_reader[t:s:c],data_writer[t]")),
            ),
        ] {
            assert_eq!(User::parse(text).unwrap(), wanted, "{text}");
        }
        for text in [
            "",
            "a",
            ":b",
            "a:",
            "a:b:",
            "a:b:king",
            "a:b:data_reader",
            "a::admin",
        ] {
            assert!(User::parse(text).is_err(), "{text}");
        }
    }
}
