//! What a process has from the one that started it and should not: a daemon outlives whoever happened to need it first.
//!
//! Descriptors keep other programs' locks and pipes; niceness, affinity, limits and ignored signals were meant for a script;
//! a terminal, a working directory and a umask are somebody's. All of it is put back to what a login gives, as far as the
//! system lets a user do that; what it does not is told.

#![expect(unsafe_code, reason = "signals and scheduling are C functions")]

use std::fs;
use std::fs::File;
use std::os::fd::AsRawFd as _;

use rustix::fs::{Mode, fstat};
use rustix::process::{
    Resource, Rlimit, getpriority_process, getrlimit, setpriority_process, setrlimit,
};

/// More than a daemon of one user needs.
const MOST_DESCRIPTORS: u64 = 1 << 16;
/// What macOS lets every process have, by <sys/syslimits.h>.
const OPEN_MAX: u64 = 10_240;
/// The last of the signals that every Unix has.
const LAST_SIGNAL: i32 = 31;

/// Puts back what this process has from the one that started it. To be called first of all: before there are other threads,
/// and before anything is opened. Returns what could not be put back, for the log.
pub(crate) fn start_clean() -> Vec<String> {
    close_descriptors();
    // It fails where we lead a group of processes already; then the terminal is not ours either.
    let _leader = rustix::process::setsid();
    let _stays = rustix::process::chdir("/");
    rustix::process::umask(Mode::from_raw_mode(0o077));
    signals();
    let mut left = Vec::new();
    left.extend(niceness());
    #[cfg(target_os = "linux")]
    left.extend(linux::scheduling());
    #[cfg(target_os = "macos")]
    macos::foreground();
    left.extend(limits());
    left
}

/// Lets this process have as many descriptors as it may: each connection takes one.
pub(crate) fn allow_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(MOST_DESCRIPTORS);
    // macOS refuses more than kern.maxfilesperproc, whatever the limit says, and takes OPEN_MAX.
    for wanted in [MOST_DESCRIPTORS, OPEN_MAX].map(|wanted| most.min(wanted)) {
        if limit.current.is_none_or(|current| current >= wanted) {
            return;
        }
        let raised = Rlimit {
            current: Some(wanted),
            maximum: limit.maximum,
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            return;
        }
    }
}

/// Makes a file standard error, and standard output where that is the same file as standard error.
pub(crate) fn redirect_output(file: &File) {
    let (output, errors) = (fstat(std::io::stdout()), fstat(std::io::stderr()));
    let both = matches!((output, errors), (Ok(output), Ok(errors)) if (output.st_dev, output.st_ino) == (errors.st_dev, errors.st_ino));
    let replaced: &[i32] = if both { &[1, 2] } else { &[2] };
    for number in replaced {
        // SAFETY: dup2(2) takes any two numbers. Standard output and standard error are never closed, and owned by nobody: the
        // standard library looks at what they are with each write.
        unsafe {
            libc::dup2(file.as_raw_fd(), *number);
        }
    }
}

/// Closes everything but the standard three, which the standard library has opened where they were closed.
fn close_descriptors() {
    let directory = match cfg!(target_os = "linux") {
        true => "/proc/self/fd",
        false => "/dev/fd",
    };
    let Ok(open) = fs::read_dir(directory) else {
        return;
    };
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 2)
        .collect();
    for number in numbers {
        // SAFETY: the caller promises that nothing was opened yet, so that none of these is owned by anything in this process;
        // that of the listing itself is closed by now, and closing it once more fails.
        unsafe {
            libc::close(number);
        }
    }
}

/// Has signals do what they do by default, and blocks none.
fn signals() {
    for number in 1..=LAST_SIGNAL {
        // Rust's own start ignores this one for good: a write to a closed pipe is an error like others.
        if number == libc::SIGPIPE {
            continue;
        }
        // SAFETY: sigaction(2) writes to `action`, which has room for it, and reads nothing from a null pointer; zeros are a
        // valid value of this plain structure. A number that is no signal is an error. Setting a signal to its default runs no
        // code of ours.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let known = libc::sigaction(number, std::ptr::null(), &raw mut action) == 0;
            if known && action.sa_sigaction == libc::SIG_IGN {
                libc::signal(number, libc::SIG_DFL);
            }
        }
    }
    // SAFETY: sigemptyset(3) initializes the set, which sigprocmask(2) reads; there is one thread.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

fn niceness() -> Option<String> {
    let niceness = getpriority_process(None).ok().filter(|nice| *nice != 0)?;
    let error = setpriority_process(None, 0).err()?;
    Some(format!(
        "niceness {niceness}, which makes it slow while others are busy ({error})"
    ))
}

/// Lifts limits as far as they may be lifted, and tells those that stay.
fn limits() -> Vec<String> {
    let all = [
        (Resource::Cpu, "CPU time in seconds"),
        (Resource::Fsize, "the size of files in bytes"),
        (Resource::Data, "data in bytes"),
        (Resource::As, "address space in bytes"),
    ];
    let mut left = Vec::new();
    for (resource, what) in all {
        let limit = getrlimit(resource);
        if limit.current != limit.maximum {
            let lifted = Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            };
            let _stays = setrlimit(resource, lifted);
        }
        if let Some(most) = getrlimit(resource).current {
            left.push(format!("a limit of {most} for {what}"));
        }
    }
    left
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    /// Puts back the scheduling policy, the processors and memory to use, and how soon to be killed for want of memory.
    pub(super) fn scheduling() -> Vec<String> {
        let mut left = Vec::new();
        // SAFETY: sched_getscheduler(2) takes 0 for the calling thread, which is the only one.
        let policy = unsafe { libc::sched_getscheduler(0) };
        if policy > libc::SCHED_OTHER {
            // SAFETY: zeros are a valid value of this plain structure, and the priority that this policy wants.
            let failed = unsafe {
                let parameter: libc::sched_param = std::mem::zeroed();
                libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameter) != 0
            };
            if failed {
                left.push(format!("scheduling policy {policy}"));
            }
        }
        // SAFETY: zeros are a valid value of this bit set, which is as long as is said. The kernel leaves out processors that
        // there are not, or that a control group does not allow.
        let failed = unsafe {
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            for processor in 0..libc::CPU_SETSIZE as usize {
                libc::CPU_SET(processor, &mut all);
            }
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const all) != 0
        };
        if failed {
            left.push("the processors that it may use".to_owned());
        }
        let zero: libc::c_long = 0;
        // ioprio_set(2): 1 is IOPRIO_WHO_PROCESS, the first 0 the calling thread, and the second no priority of its own.
        // SAFETY: numbers only.
        let _stays = unsafe { libc::syscall(libc::SYS_ioprio_set, zero + 1, zero, zero) };
        // set_mempolicy(2): MPOL_DEFAULT is 0, with a null mask of length 0.
        // SAFETY: numbers only.
        let _stays = unsafe { libc::syscall(libc::SYS_set_mempolicy, zero, zero, zero) };
        let score = "/proc/self/oom_score_adj";
        let adjusted = fs::read_to_string(score).ok();
        if adjusted.is_some_and(|text| text.trim().parse().is_ok_and(|score: i32| score > 0)) {
            // A user may not go below what the session began with.
            let _stays = fs::write(score, "0");
        }
        left
    }
}

#[cfg(target_os = "macos")]
mod macos {
    /// Leaves the background class that `taskpolicy -b` puts a process into, with all that it starts.
    pub(super) fn foreground() {
        // <sys/resource.h>: "PRIO_DARWIN_PROCESS: Second argument is a PID"; 0 is this process, and a priority of 0 removes it
        // from PRIO_DARWIN_BG.
        // SAFETY: numbers only.
        let _stays = unsafe { libc::setpriority(libc::PRIO_DARWIN_PROCESS, 0, 0) };
    }
}
