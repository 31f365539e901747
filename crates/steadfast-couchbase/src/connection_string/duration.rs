//! Durations as people write them: `2.5s`, `2500ms`, `2500`.

use std::time::Duration;

/// The unit's name and its length in nanoseconds. Longer names come first, since
/// `s` ends all but two of them.
const UNITS: [(&str, u64); 5] = [
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A year: what is longer was meant in another unit.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads a duration; without a unit it is milliseconds.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let unit = UNITS
        .iter()
        .find_map(|(name, nanos)| Some((text.strip_suffix(name)?, *nanos)));
    let (number, nanos) = unit.unwrap_or((text, 1_000_000));
    let wrong = || format!("is not a duration: {text:?}; write 2500ms or 2.5s");
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || number.ends_with('.') {
        return Err(wrong());
    }
    let too_long = || format!("is longer than a year: {text:?}");
    let whole: u64 = whole.parse().map_err(|_| too_long())?;
    let whole = whole.checked_mul(nanos).ok_or_else(too_long)?;
    let duration = Duration::from_nanos(whole.saturating_add(fraction(part, nanos)));
    if duration > LONGEST {
        return Err(too_long());
    }
    Ok(duration)
}

/// The part of a unit after the point, exactly, as far as there are nanoseconds.
fn fraction(digits: &str, nanos: u64) -> u64 {
    let mut unit = nanos;
    let mut sum = 0;
    for digit in digits.bytes().map(|byte| u64::from(byte - b'0')) {
        sum += digit * unit / 10;
        unit /= 10;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_milliseconds() {
        for (text, nanos) in [
            ("2500", 2_500_000_000),
            ("2500ms", 2_500_000_000),
            ("2.5s", 2_500_000_000),
            ("2500000us", 2_500_000_000),
            ("0.5", 500_000),
            ("1m", 60_000_000_000),
            ("1.25h", 4_500_000_000_000),
            ("0", 0),
            ("0.123456789s", 123_456_789),
            ("0.1234567891s", 123_456_789),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "", "s", "ms", "-1s", "+1s", ".5s", "1.s", "1e3", "1 s", "1d", "1.2.3", "٣s",
        ] {
            assert!(
                parse(text).unwrap_err().contains("is not a duration"),
                "{text}"
            );
        }
        for text in ["9000h", "18446744073709551615h", "99999999999999999999999s"] {
            assert!(
                parse(text).unwrap_err().contains("longer than a year"),
                "{text}"
            );
        }
    }
}
