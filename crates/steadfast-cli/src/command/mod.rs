//! The subcommands, a file for each: its arguments, and `run`.

pub(crate) mod cluster;
pub(crate) mod fault;
pub(crate) mod load;
pub(crate) mod topology;
