//! Latencies as text, so that the reports of several machines can be added up.
//!
//! The text is HdrHistogram's V2 format in base64, which its tools read in every language.

use anyhow::Context;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Returns a histogram as text.
pub(super) fn encoded(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(histogram, &mut bytes)
        .expect("memory can be written, and the histogram fits it");
    STANDARD.encode(bytes)
}

/// Reads a histogram.
pub(crate) fn decoded(text: &str) -> anyhow::Result<Histogram<u64>> {
    let bytes = STANDARD.decode(text).context("not base64")?;
    let histogram = Deserializer::new().deserialize(&mut &*bytes);
    histogram.map_err(|error| anyhow::anyhow!("not a histogram: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_read_as_it_was_written() {
        let mut histogram = Histogram::new_from(&super::super::worker_stats::histogram());
        for value in [1, 250, 250, 90_000, 119_000_000] {
            histogram.saturating_record(value);
        }
        let read = decoded(&encoded(&histogram)).unwrap();
        assert_eq!(read, histogram);
        assert_eq!(read.len(), 5);
    }

    #[test]
    fn text_that_is_not_a_histogram_is_an_error() {
        let cut = &encoded(&Histogram::new(2).unwrap())[..12];
        for text in ["", "?", "AAAA", cut] {
            assert!(decoded(text).is_err(), "{text}");
        }
    }
}
