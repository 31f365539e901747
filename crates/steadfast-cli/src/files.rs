//! Files that the command line names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::exit::usage;

/// More than anything that people write by hand, and than any certificate.
pub(crate) const TEXT: u64 = 1024 * 1024;

/// The largest document that servers take.
pub(crate) const DOCUMENT: u64 = 20 * 1024 * 1024;

/// What is in a file, of which there must not be more than this: a file need not have
/// an end.
///
/// # Errors
/// If it cannot be read or is larger, as a mistake in the command line.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    File::open(path)
        .and_then(|file| bounded(file, most))
        .map_err(|error| usage(format_args!("cannot read {name}: {error}")))
}

/// The same of anything that can be read.
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
    fn a_limit_is_what_may_be_there() {
        assert_eq!(bounded(&b"abc"[..], 3).unwrap(), b"abc");
        assert!(bounded(&b"abcd"[..], 3).is_err());
        assert!(bounded(io::repeat(0), 10).is_err());
    }
}
