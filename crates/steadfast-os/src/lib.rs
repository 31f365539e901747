//! Sockets, wall clock and entropy of a process, real or simulated.
//!
//! A simulation runs the client and the test cluster on one thread, in virtual time. It can repeat
//! a run only if it controls everything that the code asks of the operating system. So both crates
//! ask here.
//!
//! Without a simulation, each function is the operating system's own: a socket is tokio's socket
//! behind a `match`, and opening one reads a thread-local variable. A simulation implements
//! [`Platform`] and calls [`enter`] on its thread.
//!
//! Monotonic time is not here, because tokio's clock can be paused. Random numbers of `fastrand`
//! are not here, because a thread can seed them.
#![forbid(unsafe_code)]

mod blocking;
pub mod net;
mod platform;
pub mod random;
mod wall_clock;

pub use blocking::blocking;
pub use platform::{
    Connecting, Entered, Platform, ResetSwitch, SimulatedListener, SimulatedSocket, enter,
    is_simulated,
};
pub use wall_clock::wall_clock;
