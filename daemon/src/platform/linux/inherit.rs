//! Sockets from systemd: sd_listen_fds(3).
#![expect(unsafe_code, reason = "descriptors come as numbers")]

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_setfd};

/// `SD_LISTEN_FDS_START`.
const FIRST: RawFd = 3;
/// More descriptors than anybody passes; fewer than could make us look for long.
const MOST: RawFd = 256;

/// Takes the sockets that the service manager passed on under `name`, or under no name of ours; see [`listed`]. The
/// second call returns none.
pub(super) fn sockets(name: &str) -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let fds = listed(std::process::id(), |name| std::env::var_os(name), name)?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    fds.into_iter()
        .map(|fd| {
            // SAFETY: borrowed for this call only, which fails where the descriptor is not open.
            fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, FdFlags::CLOEXEC)?;
            // SAFETY: it is open, as the line above has shown. LISTEN_PID says that it was opened for this process to
            // own, and TAKEN that it is handed out once.
            Ok(unsafe { OwnedFd::from_raw_fd(fd) })
        })
        .collect()
}

/// Reads `LISTEN_PID`, `LISTEN_FDS` and `LISTEN_FDNAMES`. Where names are given and some are ours, only those count: a
/// unit may pass on other descriptors too. Where none is, such as without `FileDescriptorName=`, all count.
fn listed(pid: u32, var: impl Fn(&str) -> Option<OsString>, name: &str) -> io::Result<Vec<RawFd>> {
    let text = |variable: &str| var(variable).and_then(|value| value.into_string().ok());
    // The variables of a parent are not for us.
    if text("LISTEN_PID").and_then(|text| text.parse().ok()) != Some(pid) {
        return Ok(Vec::new());
    }
    let count = text("LISTEN_FDS").unwrap_or_default();
    let count: RawFd = count
        .parse()
        .ok()
        .filter(|count| (0..=MOST).contains(count))
        .ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("LISTEN_FDS is `{count}`, and a number up to {MOST} is expected"),
            )
        })?;
    let names = text("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<&str> = names.split(':').collect();
    let all = FIRST..FIRST + count;
    let ours: Vec<RawFd> = all
        .clone()
        .zip(names)
        .filter_map(|(fd, given)| (given == name).then_some(fd))
        .collect();
    Ok(if ours.is_empty() { all.collect() } else { ours })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fds(variables: &[(&str, &str)]) -> Result<Vec<RawFd>, String> {
        let var = |name: &str| {
            let found = variables.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| OsString::from(value))
        };
        listed(7, var, "tandem").map_err(|error| error.to_string())
    }

    #[test]
    fn only_what_is_passed_to_this_process_counts() {
        assert_eq!(fds(&[]), Ok(vec![]));
        assert_eq!(fds(&[("LISTEN_PID", "8"), ("LISTEN_FDS", "1")]), Ok(vec![]));
        assert_eq!(
            fds(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "2")]),
            Ok(vec![3, 4])
        );
        assert_eq!(fds(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "0")]), Ok(vec![]));
    }

    #[test]
    fn names_choose() {
        let named = |names| {
            let three = [("LISTEN_PID", "7"), ("LISTEN_FDS", "3")];
            fds(&[three[0], three[1], ("LISTEN_FDNAMES", names)])
        };
        assert_eq!(named("tandem:http:tandem"), Ok(vec![3, 5]));
        assert_eq!(named("tandem.socket:a:b"), Ok(vec![3, 4, 5]));
        assert_eq!(named("tandem"), Ok(vec![3]), "names may be fewer");
    }

    #[test]
    fn nonsense_is_an_error() {
        for count in ["", "-1", "many", "100000"] {
            let error = fds(&[("LISTEN_PID", "7"), ("LISTEN_FDS", count)]).unwrap_err();
            assert!(error.contains(&format!("`{count}`")), "{error}");
        }
    }
}
