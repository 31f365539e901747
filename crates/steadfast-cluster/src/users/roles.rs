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

/// Roles of a bucket: whether they write documents, and whether they can be limited to a bucket
/// (1), a scope (2) or a collection (3).
const OF_BUCKETS: &[(&str, bool, usize)] = &[
    ("bucket_admin", true, 1),
    ("bucket_full_access", true, 1),
    ("scope_admin", true, 2),
    ("data_reader", false, 3),
    ("data_writer", true, 3),
    ("data_backup", true, 1),
    ("data_dcp_reader", false, 3),
    ("data_monitoring", false, 3),
    ("replication_target", true, 1),
    ("sync_gateway_configurator", false, 3),
    ("sync_gateway_app", true, 3),
    ("sync_gateway_app_ro", false, 3),
    ("sync_gateway_replicator", false, 3),
    ("mobile_sync_gateway", true, 1),
    ("views_admin", false, 1),
    ("views_reader", false, 1),
    ("query_select", false, 3),
    ("query_insert", true, 3),
    ("query_update", true, 3),
    ("query_delete", true, 3),
    ("query_manage_index", false, 3),
    ("query_manage_functions", false, 2),
    ("query_execute_functions", false, 2),
    ("query_manage_external_functions", false, 2),
    ("query_execute_external_functions", false, 2),
    ("query_use_sequential_scans", false, 3),
    ("query_use_sequences", false, 2),
    ("query_manage_sequences", false, 2),
    ("eventing_manage_functions", false, 2),
    ("fts_admin", false, 1),
    ("fts_searcher", false, 3),
    ("analytics_manager", false, 1),
    ("analytics_select", false, 3),
];

/// Names for people that are not the words of the role.
const NAMES: &[(&str, &str)] = &[
    ("admin", "Full Admin"),
    ("ro_admin", "Read-Only Admin"),
    ("replication_admin", "XDCR Admin"),
    ("bucket_full_access", "Application Access"),
    ("data_dcp_reader", "Data DCP Reader"),
    ("fts_admin", "Search Admin"),
    ("fts_searcher", "Search Reader"),
];

/// The parts of the name of a collection, as a role shows them.
const PARTS: [&str; 3] = ["bucket_name", "scope_name", "collection_name"];

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
            let named = target.iter().all(|part: &String| !part.is_empty());
            named && depth(name).is_some_and(|depth| target.len() <= depth)
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
        // What a role does not limit is shown as all.
        for (at, part) in PARTS
            .into_iter()
            .enumerate()
            .take(depth(&self.name).unwrap_or(0))
        {
            let value = self.target.get(at).map_or("*", String::as_str);
            shown[part] = value.into();
        }
        shown
    }

    /// The bucket, the scope and the collection that it is limited to, as many as it names.
    pub(crate) fn target(&self) -> impl Iterator<Item = &str> {
        let named = self.target.iter().map(String::as_str);
        named.take_while(|part| *part != "*")
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
    let is_admin = |role: &Role| PLAIN.iter().any(|(name, yes)| *yes && *name == role.name);
    if roles.iter().any(is_admin) {
        return Rights::admin();
    }
    let writes = |role: &Role| {
        let mut writing = OF_BUCKETS.iter().filter(|(_, writes, _)| *writes);
        writing.any(|(name, ..)| *name == role.name)
    };
    let buckets = roles.iter().filter_map(|role| role.target.first());
    let all = buckets.clone().any(|bucket| bucket == "*");
    Rights {
        buckets: if all {
            BucketRights::All
        } else {
            BucketRights::Only(buckets.cloned().collect())
        },
        read_only: !roles.iter().any(writes),
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
        let desc = match (name, writes) {
            ("admin", _) => {
                "Can manage all cluster features (including security). This user can access the \
                 web console. This user can read and write all data."
            }
            (_, true) => "In this cluster: may read and write documents.",
            (_, false) => "In this cluster: may not write documents.",
        };
        json!({"role": name, "name": display_name(name), "desc": desc})
    };
    let plain = PLAIN.iter().map(|(name, writes)| shown(name, *writes));
    let of_buckets = OF_BUCKETS.iter().map(|(name, writes, depth)| {
        let mut role = shown(name, *writes);
        for part in &PARTS[..*depth] {
            role[*part] = "*".into();
        }
        role
    });
    plain.chain(of_buckets).collect()
}

/// How many parts of a collection's name a role of a bucket can be limited to.
fn depth(name: &str) -> Option<usize> {
    let found = OF_BUCKETS.iter().find(|(known, ..)| *known == name);
    found.map(|(_, _, depth)| *depth)
}

/// The name of a role for people: a real server's, or its words.
fn display_name(name: &str) -> String {
    if let Some((_, shown)) = NAMES.iter().find(|(role, _)| *role == name) {
        return (*shown).to_owned();
    }
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_written_and_reduced_to_rights() {
        let roles = Role::parse_list("data_reader[a], data_writer[b:s:c]").unwrap();
        assert_eq!(roles[1].to_string(), "data_writer[b:s:c]");
        assert_eq!(roles[1].to_json()["collection_name"], "c");
        assert_eq!(roles[0].to_json()["scope_name"], "*");
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
            "bucket_full_access[a:b]",
            "data_reader[]",
        ] {
            assert_eq!(Role::parse_list(text), Err(text.to_owned()));
        }
    }
}
