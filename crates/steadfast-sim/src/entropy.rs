//! Replaces the process's `getrandom` on simulated threads.
//!
//! The order of a `HashMap` and the branches of `select!` depend on entropy that std and tokio
//! take from the operating system, without a way to pass a seed. Both call the C function
//! `getrandom`, and std documents that a program may replace it. This module does, for threads that
//! call [`seed_thread`]; others get the kernel's bytes.
//!
//! On systems other than Linux nothing is replaced, and a seed may not replay exactly.

use std::cell::Cell;

thread_local! {
    static STREAM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes the entropy of this thread a function of the seed. Must be called before the thread makes
/// its first `HashMap`, because std then asks for entropy and keeps it.
pub(crate) fn seed_thread(seed: u64) {
    STREAM.set(Some(seed));
}

/// Fills the buffer from the thread's stream. Returns false if the thread has none.
fn fill(buffer: &mut [u8]) -> bool {
    let Ok(Some(mut state)) = STREAM.try_with(Cell::get) else {
        return false;
    };
    for piece in buffer.chunks_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bytes = mixed(state).to_le_bytes();
        piece.copy_from_slice(&bytes[..piece.len()]);
    }
    STREAM.set(Some(state));
    true
}

/// Returns the output of SplitMix64 for a state.
pub(crate) fn mixed(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "replaces a C function")]
mod replaced {
    /// The C function of this name.
    ///
    /// # Safety
    /// As the original: `buffer` must be valid for writes of `length` bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, flags: u32) -> isize {
        // SAFETY: the caller promises that the buffer is valid. An empty one may be null.
        if length > 0 && super::fill(unsafe { std::slice::from_raw_parts_mut(buffer, length) }) {
            return length as isize;
        }
        // SAFETY: the system call has the same contract as this function.
        unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) as isize }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::seed_thread;

    /// Returns what std, the crate `getrandom` and `fastrand` draw on a new thread.
    fn draws(seed: Option<u64>) -> (u64, u64) {
        let thread = std::thread::spawn(move || {
            if let Some(seed) = seed {
                seed_thread(seed);
            }
            let std = RandomState::new().hash_one(1);
            let mut bytes = [0; 8];
            steadfast_os::random::fill(&mut bytes).unwrap();
            (std, u64::from_le_bytes(bytes))
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_seeded_thread_draws_the_same_and_other_threads_draw_from_the_system() {
        let seeded = draws(Some(7));
        assert_eq!(seeded, draws(Some(7)));
        let other = draws(Some(8));
        assert!(seeded.0 != other.0 && seeded.1 != other.1);
        let (real, again) = (draws(None), draws(None));
        assert!(real.0 != again.0 && real.1 != again.1);
    }
}
