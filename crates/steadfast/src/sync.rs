//! The primitives whose use is model-checked. `--cfg loom` swaps them for
//! loom's, which try every interleaving:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p steadfast --lib --release loom
//! ```
//!
//! Loom's primitives work inside of a model only, so that under this flag no
//! other test can run.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
