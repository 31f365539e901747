//! Tests of budgets: in virtual time, and with every order of threads.

#[cfg(not(loom))]
mod budget;
#[cfg(loom)]
mod loom;
