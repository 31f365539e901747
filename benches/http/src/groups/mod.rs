//! The measured clients.

pub(crate) mod aws;
pub(crate) mod hyper;
pub(crate) mod memory;
pub(crate) mod reqwest;
pub(crate) mod tonic;

/// Somebody who makes calls.
pub(crate) struct Contender<'a> {
    pub(crate) name: &'static str,
    pub(crate) calls: Box<dyn Fn(u64) + Sync + 'a>,
}
