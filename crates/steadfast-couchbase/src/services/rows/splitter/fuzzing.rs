//! Checks the splitter with the responses that a fuzzer makes up.

use bytes::Bytes;
use serde_json::Value;

use super::{SizeLimits, Splitter};

/// Splits a response, once whole and once in pieces of this size. Both must give the same
/// rows, and the rows that serde_json finds.
pub fn rows(response: &[u8], piece: usize) {
    let whole = split(response, response.len().max(1));
    let pieces = split(response, piece.max(1));
    assert_eq!(
        whole, pieces,
        "the rows depend on where the response was cut"
    );
    if let Some(rows) = whole
        && let Ok(Value::Object(response)) = serde_json::from_slice(response)
    {
        // A row may be invalid JSON: whoever reads the row gets that error.
        let parsed = rows.iter().map(|row| serde_json::from_slice(row));
        let parsed: Result<Vec<Value>, _> = parsed.collect();
        let parsed = parsed.expect("a row of a valid response is valid");
        let expected = response.get("results").and_then(Value::as_array);
        assert_eq!(parsed, expected.cloned().unwrap_or_default());
    }
}

/// Returns the rows of a complete response.
fn split(response: &[u8], piece: usize) -> Option<Vec<Bytes>> {
    let limits = SizeLimits {
        row: 1024,
        members: 2048,
    };
    let mut splitter = Splitter::new("results", limits);
    let mut rows = Vec::new();
    for piece in response.chunks(piece) {
        splitter.push(Bytes::copy_from_slice(piece));
        while let Some(row) = splitter.next_row().ok()? {
            rows.push(row);
        }
    }
    splitter.finish().ok()?;
    Some(rows)
}
