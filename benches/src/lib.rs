//! Measurements that all benchmarks share.
//!
//! Three numbers say what a call costs, and they are not equally true.
//! *Allocations* and *instructions* are exact: the same build gives the same
//! numbers on any day, so a check can hold the code to them. *Time* is what
//! users feel, and on a machine that does other things as well it can only be
//! compared within one run, contender beside contender.

pub mod measure;
pub mod table;
