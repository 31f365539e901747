//! Roles, reduced to rights.
//!
//! A real server has dozens of roles with fine-grained permissions. The cluster knows
//! three things about a user: which buckets may be opened, whether documents may be
//! written, and whether the cluster may be managed. Roles are kept as they were
//! written, and reduced to those three.

use serde_json::{Value, json};

use super::{BucketRights, Rights};

/// Roles without a bucket, and whether they may manage the cluster.
const PLAIN: &[(&str, bool)] = &[
    ("admin", true),
    ("cluster_admin", true),
    ("security_admin", false),
    ("security_admin_local", false),
    ("security_admin_external", false),
    ("user_admin_local", false),
    ("user_admin_external", false),
    ("replication_admin", false),
    ("eventing_admin", false),
    ("backup_admin", true),
    ("sync_gateway_dev_ops", false),
    ("ro_admin", false),
    ("external_stats_reader", false),
    ("query_system_catalog", false),
    ("query_external_access", false),
    ("analytics_admin", false),
    ("analytics_reader", false),
];

/// Roles of a bucket, and whether they write documents.
const OF_BUCKETS: &[(&str, bool)] = &[
    ("bucket_admin", true),
    ("bucket_full_access", true),
    ("scope_admin", true),
    ("data_reader", false),
    ("data_writer", true),
    ("data_backup", true),
    ("data_dcp_reader", false),
    ("data_monitoring", false),
    ("replication_target", true),
    ("sync_gateway_configurator", false),
    ("sync_gateway_app", true),
    ("sync_gateway_app_ro", false),
    ("sync_gateway_replicator", false),
    ("mobile_sync_gateway", true),
    ("views_admin", false),
    ("views_reader", false),
    ("query_select", false),
    ("query_insert", true),
    ("query_update", true),
    ("query_delete", true),
    ("query_manage_index", false),
    ("query_manage_functions", false),
    ("query_execute_functions", false),
    ("query_manage_external_functions", false),
    ("query_execute_external_functions", false),
    ("query_use_sequential_scans", false),
    ("query_use_sequences", false),
    ("query_manage_sequences", false),
    ("eventing_manage_functions", false),
    ("fts_admin", false),
    ("fts_searcher", false),
    ("analytics_manager", false),
    ("analytics_select", false),
];

/// A role of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Role {
    name: String,
    /// The bucket, the scope and the collection, as many as were written.
    target: Vec<String>,
}

impl Role {
    /// Reads `name` or `name[bucket:scope:collection]`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, target) = match text.split_once('[') {
            None => (text, Vec::new()),
            Some((name, rest)) => {
                let parts = rest.strip_suffix(']')?.split(':');
                (name, parts.map(str::to_owned).collect())
            }
        };
        let known = if target.is_empty() {
            PLAIN.iter().any(|(known, _)| *known == name)
        } else {
            let named = target.len() <= 3 && target.iter().all(|part: &String| !part.is_empty());
            named && OF_BUCKETS.iter().any(|(known, _)| *known == name)
        };
        known.then(|| Self {
            name: name.to_owned(),
            target,
        })
    }

    /// Splits a list at the commas, which never stand inside of brackets.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let texts = text
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty());
        texts
            .map(|text| Self::parse(text).ok_or_else(|| text.to_owned()))
            .collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut shown = json!({"role": self.name, "origins": [{"type": "user"}]});
        let parts = ["bucket_name", "scope_name", "collection_name"];
        for (part, value) in parts.into_iter().zip(&self.target) {
            shown[part] = value.as_str().into();
        }
        shown
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.name)?;
        if self.target.is_empty() {
            return Ok(());
        }
        write!(formatter, "[{}]", self.target.join(":"))
    }
}

/// The rights that roles grant together.
pub(crate) fn rights(roles: &[Role]) -> Rights {
    let is = |role: &Role, list: &[(&str, bool)]| {
        list.iter().any(|(name, yes)| *yes && *name == role.name)
    };
    if roles.iter().any(|role| is(role, PLAIN)) {
        return Rights::admin();
    }
    let buckets = roles.iter().filter_map(|role| role.target.first());
    let all = buckets.clone().any(|bucket| bucket == "*");
    Rights {
        buckets: if all {
            BucketRights::All
        } else {
            BucketRights::Only(buckets.cloned().collect())
        },
        read_only: !roles.iter().any(|role| is(role, OF_BUCKETS)),
        admin: false,
    }
}

/// The roles that stand for rights.
pub(crate) fn from_rights(rights: &Rights) -> Vec<Role> {
    if rights.admin {
        return Role::parse("admin").into_iter().collect();
    }
    let name = if rights.read_only {
        "data_reader"
    } else {
        "bucket_full_access"
    };
    let role = |bucket: &str| Role {
        name: name.to_owned(),
        target: vec![bucket.to_owned()],
    };
    match &rights.buckets {
        BucketRights::All => vec![role("*")],
        BucketRights::Only(buckets) => buckets.iter().map(|bucket| role(bucket)).collect(),
    }
}

/// All roles there are.
pub(crate) fn all() -> Value {
    let shown = |name: &str, writes: bool| {
        let desc = match writes {
            true => "In this cluster: may read and write documents.",
            false => "In this cluster: may not write documents.",
        };
        json!({"role": name, "name": name, "desc": desc})
    };
    let plain = PLAIN.iter().map(|(name, writes)| shown(name, *writes));
    let of_buckets = OF_BUCKETS.iter().map(|(name, writes)| {
        let mut role = shown(name, *writes);
        role["bucket_name"] = "*".into();
        role
    });
    plain.chain(of_buckets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_written_and_reduced_to_rights() {
        let roles = Role::parse_list("data_reader[a], bucket_full_access[b:s:c]").unwrap();
        assert_eq!(roles[1].to_string(), "bucket_full_access[b:s:c]");
        assert_eq!(roles[1].to_json()["collection_name"], "c");
        assert_eq!(rights(&roles), Rights::buckets(["a", "b"]));
        assert_eq!(rights(&roles[..1]), Rights::buckets(["a"]).read_only());
        let admin = Role::parse_list("admin").unwrap();
        assert_eq!(rights(&admin), Rights::admin());
        assert_eq!(from_rights(&Rights::admin()), admin);
        let everywhere = Role::parse_list("data_writer[*]").unwrap();
        assert_eq!(rights(&everywhere), Rights::all_buckets());
        assert_eq!(Role::parse_list("").unwrap(), []);
    }

    #[test]
    fn the_error_names_an_unknown_role() {
        for text in [
            "king",
            "admin[b]",
            "data_reader",
            "data_reader[",
            "data_reader[a:b:c:d]",
            "data_reader[]",
        ] {
            assert_eq!(Role::parse_list(text), Err(text.to_owned()));
        }
    }
}
