//! Triggers on pressure stall information: "Monitoring for pressure thresholds" in the kernel's
//! `Documentation/accounting/psi.rst`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::platform::Pressure;

/// Time in a trigger's window from which stalls count, in microseconds: the share from which averages count as well.
const STALL_US: u32 = 100_000;
/// A trigger's window in microseconds; without CAP_SYS_RESOURCE it has to be a multiple of two seconds.
const WINDOW_US: u32 = 2_000_000;

/// Returns a file that becomes readable in the sense of POLLPRI, at most once per window, when stalls amount to `level`.
/// The trigger lasts as long as the file is open; POLLERR says that its group is gone.
pub(super) fn open(path: &Path, level: Pressure) -> io::Result<File> {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_trigger_is_written_as_the_kernel_reads_it() {
        let directory = tempfile::tempdir().unwrap();
        let written = |level| {
            let path = directory.path().join("memory.pressure");
            fs::write(&path, "").unwrap();
            open(&path, level).unwrap();
            fs::read_to_string(path).unwrap()
        };
        assert_eq!(written(Pressure::Warn), "some 100000 2000000\0");
        assert_eq!(written(Pressure::Critical), "full 100000 2000000\0");
        let absent = open(&directory.path().join("absent"), Pressure::Warn);
        assert_eq!(absent.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
