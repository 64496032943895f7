//! Sizes and times with units.

use std::time::Duration;

/// A size that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{text}\" is not a size; write a number and a unit (kB, MB, GB, KiB, MiB, GiB), such as \"3.0GB\""
)]
pub struct InvalidSize {
    /// What was given.
    pub text: String,
}

/// Bytes per unit, decimal and binary.
const UNITS: [(&str, u64); 7] = [
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("b", 1),
];

/// Splits `1.5 GB`; `None` without a number that can be read, or without a unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    Some((number.trim().parse().ok()?, unit))
}

/// Reads a size such as `3.0GB` or `512 MiB` as bytes; the unit is required and its case does not matter.
///
/// # Errors
/// When there is no positive number, no known unit, or more than 2^53 bytes.
pub fn parse_size(text: &str) -> Result<u64, InvalidSize> {
    let invalid = || InvalidSize {
        text: text.to_owned(),
    };
    let (number, unit) = number_and_unit(text).ok_or_else(invalid)?;
    let unit = unit.to_ascii_lowercase();
    let (_, factor) = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(invalid)?;
    let bytes = number * *factor as f64;
    let exactly_representable = (1u64 << f64::MANTISSA_DIGITS) as f64;
    if bytes >= 1.0 && bytes <= exactly_representable {
        Ok(bytes as u64)
    } else {
        Err(invalid())
    }
}

/// A time that cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a time; write a number and a unit (ms, s, m, h), such as \"5m\"")]
pub struct InvalidDuration {
    /// What was given.
    pub text: String,
}

/// Reads a time such as `500ms`, `1.5s`, `5 m` or `2h`; the unit is required.
///
/// # Errors
/// When there is no number of at least 0, no known unit, or more than the clock can count.
pub fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration {
        text: text.to_owned(),
    };
    let (number, unit) = number_and_unit(text).ok_or_else(invalid)?;
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(invalid()),
    };
    Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())
}

/// Writes bytes for people: `1.25 GB`, `96.0 MB`, `512 bytes`; decimal units.
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let value = bytes as f64;
    if bytes >= 1_000_000_000 {
        format!("{:.2} GB", value / 1e9)
    } else if bytes >= 1_000_000 {
        format!("{:.1} MB", value / 1e6)
    } else if bytes >= 1_000 {
        format!("{:.1} kB", value / 1e3)
    } else {
        format!("{bytes} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_need_a_number_and_a_unit() {
        for (text, bytes) in [
            ("3.0GB", 3_000_000_000),
            ("512 MiB", 512 << 20),
            ("1gib", 1 << 30),
            ("20 kB", 20_000),
            ("7b", 7),
            (" 1.5 MB ", 1_500_000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "", "3", "GB", "-1GB", "0GB", "3TB", "NaN GB", "inf GB", "1e300 GB", "3 G B",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_need_a_number_and_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("1.5s", 1_500),
            ("5 m", 300_000),
            (" 2h ", 7_200_000),
            ("0s", 0),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "", "5", "m", "-1s", "NaN s", "inf h", "1e300 h", "5 min", "1d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_read_well() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_500, "1.5 kB"),
            (96_000_000, "96.0 MB"),
            (1_250_000_000, "1.25 GB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }
}
