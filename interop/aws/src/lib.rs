//! Only tests; see `tests/`.
