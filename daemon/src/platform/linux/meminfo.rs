//! Fields of `/proc/meminfo` and of files like it: proc(5).

use std::fs;
use std::io;

use crate::platform::Pressure;

/// Share of the memory in percent below which what is available is scarce.
const SCARCE_PERCENT: u64 = 10;
/// Share of the memory in percent below which there is almost nothing left.
const LAST_PERCENT: u64 = 4;

/// Reads the level off the memory that is available without swapping.
pub(super) fn level() -> io::Result<Pressure> {
    parse_level(&fs::read_to_string("/proc/meminfo")?)
}

fn parse_level(text: &str) -> io::Result<Pressure> {
    let total = kib_field(text, "MemTotal")?;
    let percent = kib_field(text, "MemAvailable")? * 100 / total.max(1);
    Ok(match percent {
        ..LAST_PERCENT => Pressure::Critical,
        LAST_PERCENT..SCARCE_PERCENT => Pressure::Warn,
        _ => Pressure::Normal,
    })
}

/// Reads `Name:   123 kB` as bytes.
pub(super) fn kib_field(text: &str, name: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(':')?
                .trim()
                .strip_suffix("kB")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no field {name} in kB")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_whole_names() {
        assert_eq!(
            kib_field("SwapPss: 1 kB\nSwap:   2 kB\n", "Swap").unwrap(),
            2048
        );
        assert!(kib_field("Swap: many\n", "Swap").is_err());
    }

    #[test]
    fn little_available_memory_is_pressure() {
        let level = |available| {
            parse_level(&format!(
                "MemTotal: 1000 kB\nMemFree: 0 kB\nMemAvailable: {available} kB\n"
            ))
            .unwrap()
        };
        assert_eq!(level(900), Pressure::Normal);
        assert_eq!(level(100), Pressure::Normal);
        assert_eq!(level(99), Pressure::Warn);
        assert_eq!(level(39), Pressure::Critical);
        assert!(parse_level("MemTotal: 1000 kB\n").is_err());
    }
}
