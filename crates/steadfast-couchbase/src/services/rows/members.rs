//! What an answer says around its rows.

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::splitter::{Malformed, Problem};

/// The most members that an answer may have beside its rows. Services have a dozen;
/// a million, which would fit into the bytes that are allowed, would keep a thread
/// busy for hours, since each is compared with all before it.
const MOST: usize = 256;

/// The members of an answer's object, but for the rows.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: Vec<(String, Bytes)>,
}

impl Members {
    /// The member of this name, if there is one and it is not `null`.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Malformed> {
        let Some((_, value)) = self.list.iter().find(|(each, _)| each == name) else {
            return Ok(None);
        };
        serde_json::from_slice(value).map_err(|_| Malformed::member(name))
    }

    /// The member of this name, if there is one and it has this shape. For what
    /// is good to know and no more.
    pub(crate) fn hint<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        self.get(name).ok().flatten()
    }

    pub(super) fn push(&mut self, name: String, value: Bytes) -> Result<(), Problem> {
        if self.list.len() == MOST {
            return Err(Problem::TooManyMembers);
        }
        if self.has(&name) {
            return Err(Problem::Twice);
        }
        self.list.push((name, value));
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(each, _)| each == name)
    }
}
