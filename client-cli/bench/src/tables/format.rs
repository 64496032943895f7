//! Figures as text.

use crate::stats::Spread;

/// What stands where there is nothing to say.
pub(super) const NOTHING: &str = "–";

/// Writes a median with its quartiles.
pub(super) fn spread(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(
        || NOTHING.to_owned(),
        |spread| match spread.count {
            1 => format!("{:.decimals$}", spread.median),
            _ => format!(
                "{:.decimals$} ({:.decimals$}–{:.decimals$})",
                spread.median, spread.low, spread.high
            ),
        },
    )
}

/// Writes a number that may be missing.
pub(super) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.decimals$}"))
}

/// Writes a share of 0 to 1 in percent.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(
        || NOTHING.to_owned(),
        |share| format!("{:.0} %", share * 100.0),
    )
}

/// Writes bytes in binary units.
#[must_use]
pub fn bytes(count: u64) -> String {
    let mib = count as f64 / f64::from(1 << 20);
    match mib {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{:.0} KiB", mib * 1024.0),
        ..10.0 => format!("{mib:.1} MiB"),
        ..1024.0 => format!("{mib:.0} MiB"),
        _ => format!("{:.2} GiB", mib / 1024.0),
    }
}

/// Divides counts.
pub(super) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units_and_spread() {
        assert_eq!(bytes(0), "0");
        assert_eq!(bytes(9000), "9 KiB");
        assert_eq!(bytes(3 << 19), "1.5 MiB");
        assert_eq!(bytes(112 << 20), "112 MiB");
        assert_eq!(bytes(5 << 29), "2.50 GiB");
        assert_eq!(spread(Spread::of([1.0, 2.0, 3.0]), 1), "2.0 (1.5–2.5)");
        assert_eq!(spread(Spread::of([2.0]), 2), "2.00");
        assert_eq!(spread(None, 2), NOTHING);
        assert_eq!(percent(ratio(1, 8)), "12 %");
        assert_eq!(ratio(1, 0), None);
    }
}
