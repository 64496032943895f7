//! Pressure stall information: the kernel's `Documentation/accounting/psi.rst`. "Some" is time in which at least one
//! task waited for memory, "full" is time in which all that had something to do did.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::platform::Pressure;

/// Stalls of the whole machine; a control group has its own in `memory.pressure`.
pub(super) const SYSTEM: &str = "/proc/pressure/memory";
/// Time in a trigger's window from which stalls count, in microseconds.
const STALL_US: u32 = 100_000;
/// A trigger's window in microseconds; without CAP_SYS_RESOURCE it has to be a multiple of two seconds.
const WINDOW_US: u32 = 2_000_000;
/// The same share for averages, in percent.
const STALLED_PERCENT: f64 = 5.0;

/// Reads the level from the averages over 10 s.
pub(super) fn level(path: &Path) -> io::Result<Pressure> {
    parse(&fs::read_to_string(path)?)
}

/// Returns a file that becomes readable in the sense of POLLPRI, at most once per window, when stalls amount to `level`.
/// The trigger lasts as long as the file is open; POLLERR says that its group is gone.
pub(super) fn trigger(path: &Path, level: Pressure) -> io::Result<File> {
    let kind = match level {
        Pressure::Critical => "full",
        Pressure::Warn | Pressure::Normal => "some",
    };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // In one write, as a C string: the kernel puts its own zero in place of the last byte.
    file.write_all(format!("{kind} {STALL_US} {WINDOW_US}\0").as_bytes())?;
    Ok(file)
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

    #[test]
    fn a_trigger_is_written_as_the_kernel_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let written = |level| {
            let path = directory.path().join("memory.pressure");
            fs::write(&path, "").unwrap();
            trigger(&path, level).unwrap();
            fs::read_to_string(path).unwrap()
        };
        assert_eq!(written(Pressure::Warn), "some 100000 2000000\0");
        assert_eq!(written(Pressure::Critical), "full 100000 2000000\0");
        let absent = trigger(&directory.path().join("absent"), Pressure::Warn);
        assert_eq!(absent.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
