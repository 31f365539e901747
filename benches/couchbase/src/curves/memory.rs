//! Memory of this process, as the kernel counts it.

use std::fs;
use std::io;

/// Bytes that are in memory now.
pub fn resident() -> io::Result<f64> {
    field("VmRSS:")
}

/// The most bytes since [`forget_peak`].
pub fn peak() -> io::Result<f64> {
    field("VmHWM:")
}

/// Lets the peak begin at what is in memory now.
pub fn forget_peak() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

fn field(name: &str) -> io::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|value| value.trim().strip_suffix(" kB")?.parse::<f64>().ok())
        .map(|kibibytes| kibibytes * 1024.0)
        .ok_or_else(|| io::Error::other(format!("no {name} in /proc/self/status")))
}
