//! Who is where: configs, the nodes they speak of, and the connections to them.
//!
//! ```text
//!   seeds ──bootstrap──▶ first config ──▶ Routes ──▶ Node ──▶ Connection
//!                                           ▲
//!      pushed, polled, or in an answer ─────┘   newer (epoch, rev) only
//! ```
//!
//! A bucket has one [`Routes`] at a time, swapped as a whole. A [`Node`] keeps
//! its connections up by itself. Whoever cannot be dispatched waits in
//! [`Parking`] and is woken by what changes here.

mod address;
mod bucket;
mod course;
mod dial;
mod inbox;
mod node;
mod parking;
mod redial;
mod routes;
mod terminal;
mod track;
mod turns;

pub(crate) use address::Address;
pub(crate) use bucket::{BucketCore, host_of};
pub(crate) use course::Course;
pub(crate) use dial::{Opened, dial};
pub(crate) use inbox::Inbox;
pub(crate) use node::Node;
pub(crate) use parking::{NodeId, Parking, Wish};
pub(crate) use routes::Routes;
pub(crate) use terminal::{Slot, Terminals, is_terminal};
pub(crate) use track::track_cluster;
