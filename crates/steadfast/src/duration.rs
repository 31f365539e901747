//! Parses durations as people write them: `2.5s`, `2500ms`, `1m30.25s`.
//!
//! Configuration files, connection strings and the command line have the same grammar.

use std::time::Duration;

/// The units and their nanoseconds.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses one or more numbers, each with its unit: ns, us, ms, s, m or h.
///
/// Fractions are exact to the nanosecond. A duration that is too large becomes
/// [`Duration::MAX`]. Returns `None` if the text is not a duration.
pub fn parse(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    loop {
        let (number, after) = rest.split_at(rest.find(|c: char| !is_number(c))?);
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.saturating_add(multiply(number, *nanos)?);
        if after.is_empty() {
            return Some(total);
        }
        rest = after;
    }
}

const fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Multiplies a decimal number with a unit.
fn multiply(number: &str, unit: u128) -> Option<Duration> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    // Digits that do not parse are too many.
    let mut nanos = u128::from(whole.parse::<u64>().unwrap_or(u64::MAX)) * unit;
    let mut unit = unit;
    for digit in fraction.bytes().map(|byte| u128::from(byte - b'0')) {
        nanos += digit * unit / 10;
        unit /= 10;
    }
    let (seconds, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    Some(match (u64::try_from(seconds), u32::try_from(nanos)) {
        (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => Duration::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        for (text, nanos) in [
            ("2500ms", 2_500_000_000),
            ("2.5s", 2_500_000_000),
            ("2500000us", 2_500_000_000),
            ("12µs", 12_000),
            ("1m", 60_000_000_000),
            ("2m3.5s", 123_500_000_000),
            ("1.25h", 4_500_000_000_000),
            ("0s", 0),
            ("0.123456789s", 123_456_789),
            ("0.1234567891s", 123_456_789),
        ] {
            let expected = Some(Duration::from_nanos(nanos));
            assert_eq!(parse(text), expected, "{text}");
        }
        for text in ["18446744073709551615h", "99999999999999999999999s"] {
            assert!(parse(text) > Some(Duration::from_secs(1 << 60)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_durations() {
        for text in [
            "", "5", "s", "ms", "-1s", "+1s", ".5s", "1.s", "1e3", "1e400s", "1 s", "1d", "1.2.3s",
            "٣s", "nan s", "∞s",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
