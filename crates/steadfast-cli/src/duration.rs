//! Durations: parsing of flags, and display.

use std::fmt::Display;
use std::time::Duration;

use steadfast::duration;

/// A year: a longer duration was probably meant in another unit.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Parses a duration of at most a year.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    match parse_unbounded(text)? {
        duration if duration <= LONGEST => Ok(duration),
        _ => Err("must be at most a year".to_owned()),
    }
}

/// Parses `250ms`, `2.5s`, `2m`. The unit is required: a bare number means milliseconds to
/// some people and seconds to others.
pub(crate) fn parse_unbounded(text: &str) -> Result<Duration, String> {
    let invalid = || "must be a number with ms, s, m or h, as in 250ms or 2.5s".to_owned();
    duration::parse(text).ok_or_else(invalid)
}

/// Parses a time limit: a duration above zero.
pub(crate) fn parse_positive(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => Err("must be above 0: 0 leaves no time".to_owned()),
        positive => Ok(positive),
    }
}

/// Formats a duration with its unit and no more digits than needed.
pub(crate) fn show(duration: Duration) -> impl Display {
    std::fmt::from_fn(move |f| match duration.as_micros() {
        micros @ ..1_000 => write!(f, "{} ms", micros as f64 / 1e3),
        micros @ 1_000..1_000_000 if micros % 1_000 == 0 => write!(f, "{} ms", micros / 1_000),
        micros @ 1_000..1_000_000 => write!(f, "{:.1} ms", micros as f64 / 1e3),
        micros => {
            let seconds = (micros as f64 / 1e4).round() / 1e2;
            write!(f, "{seconds} s")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        for (text, millis) in [
            ("250ms", 250),
            ("2.5s", 2500),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "", "5", "s", "-1s", "1e400s", "nan s", "1 day", "∞s", "8761h",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_limit_is_above_zero() {
        assert_eq!(parse_positive("1ms"), Ok(Duration::from_millis(1)));
        for text in ["0s", "0.0ms", "-0s", "-1s"] {
            assert!(parse_positive(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_are_shown_with_the_digits_that_matter() {
        for (micros, text) in [
            (0, "0 ms"),
            (820, "0.82 ms"),
            (1_000, "1 ms"),
            (1_234, "1.2 ms"),
            (500_000, "500 ms"),
            (2_500_000, "2.5 s"),
            (75_000_000, "75 s"),
        ] {
            let shown = show(Duration::from_micros(micros)).to_string();
            assert_eq!(shown, text);
        }
    }
}
