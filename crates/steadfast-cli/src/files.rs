//! Bounded reading of files that the command line names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::exit::usage;

/// The limit of hand-written files and certificates.
pub(crate) const TEXT: u64 = 1024 * 1024;

/// The limit of documents, which is the server's.
pub(crate) const DOCUMENT: u64 = 20 * 1024 * 1024;

/// The limit of files with many documents.
pub(crate) const DOCUMENTS: u64 = 512 * 1024 * 1024;

/// Reads a file of at most `most` bytes. Without a limit, a file such as `/dev/zero` would
/// never end.
///
/// # Errors
/// A usage error if the file is larger or cannot be read.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    File::open(path)
        .and_then(|file| bounded(file, most))
        .map_err(|error| usage(format_args!("cannot read {name}: {error}")))
}

/// Reads at most `most` bytes from any reader.
pub(crate) fn bounded(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_inclusive() {
        assert_eq!(bounded(&b"abc"[..], 3).unwrap(), b"abc");
        assert!(bounded(&b"abcd"[..], 3).is_err());
        assert!(bounded(io::repeat(0), 10).is_err());
    }
}
