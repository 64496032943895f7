//! Sockets from launchd: `<launch.h>`, `launch_activate_socket`.
#![expect(unsafe_code, reason = "launch_activate_socket is a C function")]

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::{ptr, slice};

use rustix::io::{FdFlags, fcntl_setfd};

unsafe extern "C" {
    /// In libSystem, since macOS 10.10.
    fn launch_activate_socket(
        name: *const c_char,
        fds: *mut *mut c_int,
        count: *mut usize,
    ) -> c_int;
}

/// Takes the sockets that the job's property list has under `name`: one per address, so there may be several. None where
/// launchd did not start this process, or its job has no such sockets.
pub(super) fn sockets(name: &str) -> io::Result<Vec<OwnedFd>> {
    let name = CString::new(name)?;
    let mut fds: *mut c_int = ptr::null_mut();
    let mut count = 0;
    // SAFETY: `name` is a C string; the call writes an array that it allocated, and its length, to the other two.
    let result = unsafe { launch_activate_socket(name.as_ptr(), &raw mut fds, &raw mut count) };
    match result {
        0 => {}
        // launch_activate_socket(3): "The calling process is not managed by launchd", and "the socket name specified does
        // not exist in the caller's launchd.plist".
        libc::ESRCH | libc::ENOENT => return Ok(Vec::new()),
        // EALREADY: "The socket has already been activated by the caller."
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    if fds.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: on success `fds` holds `count` descriptors, until it is freed below.
    let owned: Vec<OwnedFd> = unsafe { slice::from_raw_parts(fds, count) }
        .iter()
        // SAFETY: they are open and the caller's to close; a name can be activated only once, so nobody else has them.
        .map(|fd| unsafe { OwnedFd::from_raw_fd(*fd) })
        .collect();
    // SAFETY: "the caller is responsible for calling free(3)" on the array.
    unsafe { libc::free(fds.cast()) };
    for fd in &owned {
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    Ok(owned)
}
