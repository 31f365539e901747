//! The subcommands: a file or folder for each, with its flags and `run`.

pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod doctor;
pub(crate) mod document;
pub(crate) mod explain;
pub(crate) mod fault;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod query;
pub(crate) mod simulate;
pub(crate) mod storm;
pub(crate) mod topology;
