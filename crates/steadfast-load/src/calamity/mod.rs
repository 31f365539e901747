//! What befalls the cluster.
//!
//! The [`Script`] is a matter of the seed and the duration alone; the [`Conductor`]
//! plays it on the cluster and enters it into the [`Chronicle`]. Every script has every
//! act, in an order of its own.

mod act;
mod chronicle;
mod conduct;
mod script;

pub use act::{Act, Cut};
pub use chronicle::{Chronicle, Mark, Played};
pub use conduct::Conductor;
pub use script::{Scheduled, Script};
