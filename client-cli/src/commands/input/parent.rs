//! Whether the program that started this one has the same standard input: it may go on to read it.

use rustix::fs::Stat;

/// Says whether the parent process has this pipe as its standard input. One that cannot be asked has not.
#[cfg(target_os = "linux")]
pub(super) fn has_as_input(pipe: &Stat) -> bool {
    let Some(parent) = rustix::process::getppid() else {
        return false;
    };
    let input = format!("/proc/{}/fd/0", parent.as_raw_nonzero());
    rustix::fs::stat(input)
        .is_ok_and(|input| (input.st_dev, input.st_ino) == (pipe.st_dev, pipe.st_ino))
}

/// Says whether the parent process has this pipe as its standard input. One that cannot be asked has not.
#[cfg(target_os = "macos")]
pub(super) fn has_as_input(_pipe: &Stat) -> bool {
    let Some(parent) = rustix::process::getppid() else {
        return false;
    };
    let own = macos::pipe_of_input(std::process::id().cast_signed());
    own.is_some() && own == macos::pipe_of_input(parent.as_raw_nonzero().get())
}

#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "the system is asked by a C function")]
mod macos {
    use std::mem::{MaybeUninit, size_of};

    /// `PROC_PIDFDPIPEINFO` of <sys/proc_info.h>.
    const PIPE_INFO: libc::c_int = 6;

    /// `struct pipe_fdinfo` of <sys/proc_info.h>: what is known of the descriptor (24 bytes) and of the file (136 bytes), and
    /// then of the pipe.
    #[repr(C)]
    struct PipeInfo {
        descriptor_and_file: [u64; 20],
        handle: u64,
        peer_handle: u64,
        status: libc::c_int,
        reserved: libc::c_int,
    }

    /// Which pipe a process has as its standard input: the kernel's own name of it, the same for all processes.
    pub(super) fn pipe_of_input(process: libc::c_int) -> Option<u64> {
        let mut info = MaybeUninit::<PipeInfo>::zeroed();
        let size = size_of::<PipeInfo>() as libc::c_int;
        // <libproc.h>: `int proc_pidfdinfo(int pid, int fd, int flavor, void *buffer, int buffersize)` fills the buffer, and
        // returns how many bytes it wrote, 0 or less where it failed, such as for a descriptor that is no pipe.
        // SAFETY: the buffer has the size that is said, and any bits are a value of it.
        let written =
            unsafe { libc::proc_pidfdinfo(process, 0, PIPE_INFO, info.as_mut_ptr().cast(), size) };
        // SAFETY: all of it was zeroed, and is plain numbers.
        (written == size).then(|| unsafe { info.assume_init() }.handle)
    }
}

/// Says whether the parent process has this pipe as its standard input. Nobody can be asked here, and a loop's input is not
/// to be eaten.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub(super) fn has_as_input(_pipe: &Stat) -> bool {
    true
}
