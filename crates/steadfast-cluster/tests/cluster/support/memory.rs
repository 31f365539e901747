//! The memory of this process.

use std::time::{Duration, Instant};

pub const MIB: usize = 1024 * 1024;

/// Waits until the memory of this process has stopped growing.
pub async fn settle() {
    let mut last = resident();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = resident();
        if now <= last + MIB {
            return;
        }
        last = now;
    }
}

/// The resident memory of this process in bytes.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kibibytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}
