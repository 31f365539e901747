//! Random bytes that nobody can predict, outside of a simulation.

pub use getrandom::Error;

use crate::platform::current;

/// Fills the buffer with random bytes.
///
/// # Errors
/// If the operating system has none.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    match current() {
        Some(platform) => {
            platform.fill_random(bytes);
            Ok(())
        }
        None => getrandom::fill(bytes),
    }
}

/// Returns random bytes.
///
/// # Panics
/// If the operating system has none.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes).expect("the operating system has no random bytes");
    bytes
}

/// Returns a random number.
///
/// # Panics
/// If the operating system has no random bytes.
pub fn u64() -> u64 {
    u64::from_le_bytes(bytes())
}

/// Returns a random number.
///
/// # Panics
/// If the operating system has no random bytes.
pub fn u128() -> u128 {
    u128::from_le_bytes(bytes())
}
