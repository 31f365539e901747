//! The addresses and logins of a cluster: for people, as JSON, and as variables of a command.

use std::path::Path;

use serde_json::{Value, json};
use steadfast_cluster::{Service, TestCluster};

use super::contents::{Contents, User};
use crate::output::line;

/// Returns the environment of a command.
pub(super) fn variables(
    cluster: &TestCluster,
    contents: &Contents,
    authority: Option<&Path>,
) -> Vec<(&'static str, String)> {
    let (user, password) = contents.login();
    let optional = [
        (
            "STEADFAST_CONNECTION_STRING_TLS",
            cluster.tls_connection_string(),
        ),
        (
            "STEADFAST_CA",
            authority.map(|path| path.display().to_string()),
        ),
        ("STEADFAST_CONTROL", control(cluster)),
    ];
    let optional = optional.into_iter();
    [
        ("STEADFAST_CONNECTION_STRING", cluster.connection_string()),
        ("STEADFAST_USERNAME", user.to_owned()),
        // As the commands on documents call it.
        ("STEADFAST_USER", user.to_owned()),
        ("STEADFAST_PASSWORD", password.to_owned()),
    ]
    .into_iter()
    .chain(optional.filter_map(|(name, value)| Some((name, value?))))
    .collect()
}

pub(super) fn print(cluster: &TestCluster, contents: &Contents, authority: Option<&Path>) {
    line(format_args!("connect    {}", cluster.connection_string()));
    line(format_args!("bucket     {}", contents.buckets.join(" ")));
    for (scope, collection) in &contents.collections {
        line(format_args!("collection {scope}.{collection}"));
    }
    for user in &contents.users {
        let roles = match &user.roles {
            Some(roles) => format!("      roles {roles}"),
            None => String::new(),
        };
        line(format_args!(
            "user       {}      password {}{roles}",
            user.name, user.password
        ));
    }
    if contents.documents() > 0 {
        line(format_args!("documents  {}", contents.documents()));
    }
    if let (Some(string), Some(path)) = (cluster.tls_connection_string(), authority) {
        line(format_args!("with TLS   {string}"));
        line(format_args!("authority  {}", path.display()));
    }
    if let Some(mgmt) = cluster.addresses(Service::Management).first() {
        line(format_args!("manage     http://{mgmt}"));
    }
    if let (Some(address), Some(control)) = (cluster.control_address(), control(cluster)) {
        line(format_args!(
            "control    http://{address}      export STEADFAST_CONTROL={control}"
        ));
        line(format_args!("token      {}", cluster.control_token()));
    }
    line(format_args!("seed       {}", cluster.seed()));
    line("up; Ctrl-C stops it");
}

pub(super) fn to_json(
    cluster: &TestCluster,
    contents: &Contents,
    authority: Option<&Path>,
) -> Value {
    let (user, password) = contents.login();
    let mgmt = cluster.addresses(Service::Management);
    json!({
        "connect": cluster.connection_string(),
        "buckets": contents.buckets,
        "username": user,
        "password": password,
        "users": contents.users.iter().map(User::to_json).collect::<Vec<_>>(),
        "collections": contents.collections.iter().map(|(scope, collection)| format!("{scope}.{collection}")).collect::<Vec<_>>(),
        "documents": contents.documents(),
        "connect_tls": cluster.tls_connection_string(),
        "authority": authority.map(|path| path.display().to_string()),
        "manage": mgmt.first().map(|mgmt| format!("http://{mgmt}")),
        "control": cluster.control_address().map(|control| control.to_string()),
        "control_token": cluster.control_token(),
        "seed": cluster.seed(),
    })
}

/// The address of the control endpoint with its token, as the other commands take it.
pub(super) fn control(cluster: &TestCluster) -> Option<String> {
    let address = cluster.control_address()?;
    Some(format!("{}@{address}", cluster.control_token()))
}
