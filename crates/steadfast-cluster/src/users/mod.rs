//! Users, their rights and their tokens.

pub(crate) mod roles;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use parking_lot::RwLock;
use subtle::ConstantTimeEq;

use crate::sasl::scram::{ScramHash, ScramKeys};
use roles::Role;

/// Rejects an invalid user name: in Basic authentication a colon ends the name, and in SASL control
/// characters separate fields.
///
/// # Errors
/// A sentence that says so.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.contains(|c: char| c == ':' || c.is_control()) {
        return Err(format!(
            "{name:?} cannot be a user's name: it must not be empty, nor contain a colon or a \
             control character"
        ));
    }
    Ok(())
}

/// The rights of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Which buckets may be opened.
    pub buckets: BucketRights,
    /// Whether documents may only be read.
    pub read_only: bool,
    /// Whether the cluster may be managed.
    pub admin: bool,
}

/// Which buckets a user may open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketRights {
    /// Every one, also those that are made later.
    All,
    /// These.
    Only(BTreeSet<String>),
}

impl Rights {
    /// Everything.
    pub fn admin() -> Self {
        Self {
            buckets: BucketRights::All,
            read_only: false,
            admin: true,
        }
    }

    /// Reading and writing in every bucket, and no management.
    pub fn all_buckets() -> Self {
        Self {
            buckets: BucketRights::All,
            read_only: false,
            admin: false,
        }
    }

    /// Reading and writing in these buckets.
    pub fn buckets<Name: Into<String>>(names: impl IntoIterator<Item = Name>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self {
            buckets: BucketRights::Only(names),
            read_only: false,
            admin: false,
        }
    }

    /// The same, reading only.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self {
            read_only: true,
            ..self
        }
    }

    /// Returns the rights that roles grant together, such as `data_reader[travel],admin`.
    ///
    /// # Errors
    /// If a role is unknown, or is malformed; the error is its text.
    pub fn from_roles(roles: &str) -> Result<Self, String> {
        Ok(roles::rights(&Role::parse_list(roles)?))
    }

    /// Returns whether a bucket may be opened.
    pub(crate) fn may_open(&self, bucket: &str) -> bool {
        match &self.buckets {
            BucketRights::All => true,
            BucketRights::Only(names) => names.contains(bucket),
        }
    }
}

/// Details of a user for the management service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    /// The name for people to read.
    pub display_name: String,
    /// The roles as they were written, if the user was made with roles instead of rights.
    pub roles: Option<Vec<String>>,
}

/// A user with a password.
#[derive(Debug)]
pub(crate) struct User {
    /// The name.
    pub name: String,
    /// The rights.
    pub rights: Rights,
    /// The details for management.
    pub profile: Profile,
    password: String,
    /// When the password was set.
    pub password_changed: SystemTime,
    salt: [u8; 16],
    /// Deriving these takes thousands of hashes, so it is done when first asked for.
    keys: [OnceLock<ScramKeys>; 3],
}

impl User {
    fn new(name: String, password: String, rights: Rights, profile: Profile) -> Self {
        Self {
            name,
            rights,
            profile,
            password,
            password_changed: steadfast_os::wall_clock(),
            salt: steadfast_os::random::bytes(),
            keys: Default::default(),
        }
    }

    /// Returns whether this is an administrator that the cluster started with. Management
    /// neither lists nor changes these.
    pub(crate) fn is_built_in(&self) -> bool {
        self.rights.admin && self.profile.roles.is_none()
    }

    /// Returns whether this is the password.
    pub(crate) fn has_password(&self, password: &[u8]) -> bool {
        self.password.as_bytes().ct_eq(password).into()
    }

    /// The SCRAM keys of the password.
    pub(crate) fn scram_keys(&self, hash: ScramHash) -> &ScramKeys {
        self.keys[hash as usize]
            .get_or_init(|| ScramKeys::derive(hash, self.password.as_bytes(), &self.salt))
    }
}

/// All users of a cluster.
#[derive(Debug, Default)]
pub struct Users {
    users: RwLock<BTreeMap<String, Arc<User>>>,
    tokens: RwLock<BTreeMap<String, String>>,
}

impl Users {
    /// Adds a user, or gives an existing one a new password and new rights.
    pub fn put(&self, name: &str, password: &str, rights: Rights) {
        self.put_with_profile(name, password, rights, Profile::default());
    }

    /// Adds or replaces a user, with what management shows.
    pub(crate) fn put_with_profile(
        &self,
        name: &str,
        password: &str,
        rights: Rights,
        profile: Profile,
    ) {
        let user = User::new(name.to_owned(), password.to_owned(), rights, profile);
        self.users.write().insert(name.to_owned(), Arc::new(user));
    }

    /// Gives a user other rights and keeps the password; false if there is no such user.
    pub(crate) fn change(&self, name: &str, rights: Rights, profile: Profile) -> bool {
        let mut users = self.users.write();
        let Some(user) = users.get_mut(name) else {
            return false;
        };
        let changed = User::new(name.to_owned(), user.password.clone(), rights, profile);
        *user = Arc::new(User {
            password_changed: user.password_changed,
            ..changed
        });
        true
    }

    /// Removes a user; false if there was none. Connections that are open stay open.
    pub fn remove(&self, name: &str) -> bool {
        self.users.write().remove(name).is_some()
    }

    /// The user of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<User>> {
        self.users.read().get(name).cloned()
    }

    /// The user of this name, if the password is right.
    pub(crate) fn check(&self, name: &str, password: &[u8]) -> Option<Arc<User>> {
        self.get(name).filter(|user| user.has_password(password))
    }

    /// The rights of a user.
    pub fn rights(&self, name: &str) -> Option<Rights> {
        self.get(name).map(|user| user.rights.clone())
    }

    /// All names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.users.read().keys().cloned().collect()
    }

    /// Accepts a bearer token for a user, instead of a password.
    pub fn accept_token(&self, token: &str, user: &str) {
        self.tokens
            .write()
            .insert(token.to_owned(), user.to_owned());
    }

    /// Accepts a bearer token no more; false if it was not accepted before.
    pub fn revoke_token(&self, token: &str) -> bool {
        self.tokens.write().remove(token).is_some()
    }

    /// The user that a bearer token stands for.
    pub(crate) fn by_token(&self, token: &str) -> Option<Arc<User>> {
        let name = self.tokens.read().get(token).cloned()?;
        self.get(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_tokens_are_checked() {
        let users = Users::default();
        users.put("app", "secret", Rights::all_buckets());
        assert!(users.check("app", b"secret").is_some());
        assert!(users.check("app", b"wrong").is_none());
        assert!(users.check("nobody", b"secret").is_none());
        users.accept_token("abc", "app");
        assert_eq!(users.by_token("abc").unwrap().name, "app");
        assert!(users.revoke_token("abc"));
        assert!(users.by_token("abc").is_none());
        users.put("app", "new", Rights::all_buckets());
        assert!(users.check("app", b"secret").is_none());
        assert!(users.change("app", Rights::admin(), Profile::default()));
        assert!(
            users
                .check("app", b"new")
                .is_some_and(|user| user.rights.admin)
        );
        assert!(!users.change("nobody", Rights::admin(), Profile::default()));
        assert!(users.remove("app") && !users.remove("app"));
    }

    #[test]
    fn rights_name_buckets_or_all() {
        assert!(Rights::admin().may_open("any"));
        let some = Rights::buckets(["a", "b"]);
        assert!(some.may_open("a") && !some.may_open("c"));
        assert!(some.clone().read_only().read_only && !some.read_only);
    }

    #[test]
    fn roles_become_rights() {
        let roles = Rights::from_roles("data_reader[a]");
        assert_eq!(roles, Ok(Rights::buckets(["a"]).read_only()));
        assert_eq!(Rights::from_roles("admin,king"), Err("king".to_owned()));
        assert_eq!(Rights::from_roles("admin"), Ok(Rights::admin()));
    }
}
