//! What came of the changes.

use std::sync::Arc;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use steadfast_wire::Entries;
use steadfast_wire::subdoc::PathMutationResult;

use super::super::result::{self, MutationResult, MutationToken};
use super::super::value::decode;
use super::OPERATION;
use crate::error::{Error, ErrorKind, Result};
use crate::kv::execute::Answered;

/// What came of changing parts of a document.
#[derive(Clone, Debug)]
pub struct MutateInResult {
    mutation: MutationResult,
    /// What some of the changes have to say, by the places of their paths.
    values: Vec<(usize, Bytes)>,
}

impl MutateInResult {
    pub(super) fn read(answer: &Answered, bucket: &Arc<str>, order: &[u8]) -> Result<Self> {
        let value = result::value(OPERATION, &answer.frame)?;
        let mut values = Vec::new();
        for said in Entries::<PathMutationResult<'_>>::new(&value) {
            let said = said.map_err(|error| result::unreadable(OPERATION, error))?;
            let Some(place) = order.get(usize::from(said.index)) else {
                let problem = format!("it speaks of path {} of {}", said.index, order.len());
                return Err(result::unreadable(OPERATION, problem));
            };
            values.push((usize::from(*place), value.slice_ref(said.value)));
        }
        let mutation = MutationResult::read(answer, bucket);
        Ok(Self { mutation, values })
    }

    /// What a change has to say, by the place of its path from zero: a counter its
    /// new value.
    ///
    /// # Errors
    /// If it has nothing to say, or that is not a `T`.
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

    /// The document's version now.
    pub fn cas(&self) -> u64 {
        self.mutation.cas()
    }

    /// Which write it was, if the server said so.
    pub fn token(&self) -> Option<&MutationToken> {
        self.mutation.token()
    }
}
