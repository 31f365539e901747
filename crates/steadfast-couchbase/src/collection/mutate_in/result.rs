//! Results of mutations.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use steadfast_wire::Entries;
use steadfast_wire::subdoc::PathMutationResult;

use super::super::result::{MutationResult, MutationToken};
use super::super::value::decode;
use super::OPERATION;
use crate::error::{Error, ErrorKind, Result};
use crate::kv::response::KvResponse;

/// The result of changing parts of a document.
#[derive(Clone, Debug)]
pub struct MutateInResult {
    mutation: MutationResult,
    /// The values of counters, by the index of their path.
    values: Vec<(usize, Bytes)>,
}

impl MutateInResult {
    pub(super) fn read(response: KvResponse<'_>) -> Result<Self> {
        let (value, order) = (response.value()?, &response.paths);
        let mut values = Vec::new();
        for entry in Entries::<PathMutationResult<'_>>::new(&value) {
            let entry = entry.map_err(|error| response.unreadable(error))?;
            let Some(place) = order.get(usize::from(entry.index)) else {
                let problem = format!("it names path {} of {}", entry.index, order.len());
                return Err(response.unreadable(problem));
            };
            values.push((usize::from(*place), value.slice_ref(entry.value)));
        }
        let mutation = MutationResult::read(response)?;
        Ok(Self { mutation, values })
    }

    /// The new value of a counter, by the index of its path from zero.
    ///
    /// # Errors
    /// If the path is not a counter, or its value is not a `T`.
    pub fn content_as<T: DeserializeOwned>(&self, index: usize) -> Result<T> {
        let mut values = self.values.iter();
        match values.find(|(place, _)| *place == index) {
            Some((_, value)) => decode(value),
            None => {
                let problem = format!("path {index} has no value; only counters have");
                Err(Error::new(ErrorKind::InvalidArgument, OPERATION.name()).because(problem))
            }
        }
    }

    /// The document's new version.
    pub fn cas(&self) -> u64 {
        self.mutation.cas()
    }

    /// The token of the write, if the server sent one.
    pub fn token(&self) -> Option<&MutationToken> {
        self.mutation.token()
    }
}
