//! What befalls the cluster.
//!
//! The [`Script`] is a matter of the seed and the duration alone; the [`Conductor`]
//! plays it on the cluster. Every script has every act, in an order of its own.

mod act;
mod conduct;
mod script;

pub use act::{Act, Cut};
pub use conduct::{Conductor, Mark};
pub use script::{Scheduled, Script};
