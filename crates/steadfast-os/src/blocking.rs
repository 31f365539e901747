//! Work that takes long without waiting.

use tokio::task::JoinError;

use crate::is_simulated;

/// Runs a function on a thread for blocking work. A simulation has one thread, so it runs there.
///
/// Dropping the future does not stop a function that has started.
///
/// # Errors
/// If the function panics, or the runtime shuts down before it starts.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if is_simulated() {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await
}
