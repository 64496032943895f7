//! Pressure stall information: the kernel's `Documentation/accounting/psi.rst`. "Some" is time in which at least one
//! task waited for memory, "full" is time in which all that had something to do did.

use std::fs;
use std::io;
use std::path::Path;

use super::Pressure;

/// Share of stalled time from which it counts, in percent.
const STALLED_PERCENT: f64 = 5.0;

/// Reads the level from the averages over 10 s.
pub(super) fn level(path: &Path) -> io::Result<Pressure> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    parse(&text)
}

fn parse(text: &str) -> io::Result<Pressure> {
    let average = |kind: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(kind))?
            .split_whitespace()
            .find_map(|field| field.strip_prefix("avg10="))?
            .parse::<f64>()
            .ok()
    };
    let some = average("some ").ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "no average over 10 s of some stalls",
        )
    })?;
    Ok(
        if average("full ").is_some_and(|full| full >= STALLED_PERCENT) {
            Pressure::Critical
        } else if some >= STALLED_PERCENT {
            Pressure::Warn
        } else {
            Pressure::Normal
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_some_warn_and_of_all_are_critical() {
        let level = |some: &str, full: &str| {
            parse(&format!(
                "some avg10={some} avg60=0.00 avg300=0.00 total=1\nfull avg10={full} avg60=9.00 avg300=9.00 total=1\n"
            ))
            .unwrap()
        };
        assert_eq!(level("0.00", "0.00"), Pressure::Normal);
        assert_eq!(level("4.99", "4.99"), Pressure::Normal);
        assert_eq!(level("5.00", "0.10"), Pressure::Warn);
        assert_eq!(level("30.00", "12.34"), Pressure::Critical);
        assert!(parse("").is_err());
    }
}
