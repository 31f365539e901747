//! The end of the parent process.
//!
//! A test that is killed cannot stop the cluster that it started. The kernel gives an
//! orphan another parent, so a change of the parent's number is the sign to stop.

use std::time::Duration;

/// How often the parent is looked at.
const PERIOD: Duration = Duration::from_millis(200);

/// Resolves when the process that started this one has ended; never if it is not `watched`.
///
/// Cancel-safe: it only waits.
pub(crate) async fn ended(watched: bool) {
    #[cfg(unix)]
    if watched {
        use std::os::unix::process::parent_id;
        let first = parent_id();
        while parent_id() == first {
            tokio::time::sleep(PERIOD).await;
        }
        return;
    }
    #[cfg(not(unix))]
    let _ = (watched, PERIOD);
    std::future::pending().await
}
