//! The primitives whose use is model-checked. `--cfg loom` swaps them for
//! loom's, which try every interleaving; see `tests/loom.rs`.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicU64, Ordering},
};
