//! What the daemon asks of the operating system; all `unsafe` for it lives here.
//!
//! Owns readings, not decisions: nothing here knows what a budget is.

use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

mod clean;
mod clock;
mod fake;
mod guard;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod poll;
mod psi;
mod told;

pub(crate) use clean::{allow_descriptors, redirect_output, start_clean};
pub(crate) use clock::local_time;
pub use fake::FakePlatform;
pub use guard::{KeepAwake, PressureWatch};
#[cfg(target_os = "linux")]
pub use linux::Linux;
#[cfg(target_os = "macos")]
pub use macos::MacOs;

/// How short of memory the system says it is.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Pressure {
    /// There is enough.
    #[default]
    Normal,
    /// What can be spared should be given back.
    Warn,
    /// What is not given back soon costs everybody dearly: the system is about to end processes, or stalls.
    Critical,
}

/// What to call with each new level.
pub type OnPressure = Box<dyn Fn(Pressure) + Send + Sync>;

/// Readings of the machine and of this process.
pub trait Platform: Debug + Send + Sync {
    /// Returns the memory in bytes that the system charges to this process and could not take back without writing:
    /// `phys_footprint` on macOS, private dirty and swapped pages on Linux.
    ///
    /// # Errors
    /// When the system does not say.
    fn footprint(&self) -> io::Result<u64>;

    /// Returns the memory in bytes that this process could have at most: the machine's, or a control group's limit
    /// where that is less.
    ///
    /// # Errors
    /// When the system does not say.
    fn physical_memory(&self) -> io::Result<u64>;

    /// Returns how many physical performance cores this process may run on, threads of one core counted once; `None`
    /// where the system does not say.
    fn performance_cores(&self) -> Option<usize>;

    /// Returns the memory in bytes that the GPU recommends to use at most; `None` where there is no such limit.
    fn recommended_working_set(&self) -> Option<u64>;

    /// Returns how short of memory the system says it is now.
    ///
    /// # Errors
    /// When the system does not say.
    fn pressure(&self) -> io::Result<Pressure>;

    /// Calls `on_change` from a thread of its own whenever the level changes, until the guard drops; a call in progress
    /// then may still end. The level counts as normal before the first call. A shortage that began before may be told
    /// late or never: ask [`Platform::pressure`] once.
    ///
    /// # Errors
    /// When the system offers no way to be told.
    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch>;

    /// Gives memory back to the system that the allocator keeps for later. Allocators keep most of what was freed, and each
    /// of several arenas its own: after a few reloads that is more than the models take.
    fn give_back(&self);

    /// Keeps the system from sleeping for want of a user until the guard drops, where it would; a refusal is logged.
    fn keep_awake(&self) -> KeepAwake;
}

/// Takes the listening sockets that the service manager has opened for this process under `name`; none where it did not.
///
/// # Errors
/// When it says that there are some, and they are not there.
pub fn inherited_sockets(name: &str) -> io::Result<Vec<OwnedFd>> {
    #[cfg(target_os = "linux")]
    return linux::inherited_sockets(name);
    #[cfg(target_os = "macos")]
    return macos::inherited_sockets(name);
}

/// Has the allocator keep less for later, for as long as the process lives; to be called before there are threads. With an
/// arena for each of many threads, what one reload leaves behind in each adds up over reloads.
pub fn keep_memory_together() {
    #[cfg(target_os = "linux")]
    linux::keep_memory_together();
}

/// Returns how many bytes of memory the limits of this process leave it (`ulimit -v`, `ulimit -d`), mapped files counted
/// where the system counts them; `None` where there is no such limit.
#[must_use]
pub fn room() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return linux::room();
    // The system knows these limits and holds nobody to them.
    #[cfg(target_os = "macos")]
    return None;
}

/// Has a write beyond a limit of the process, or of its disk quota, fail as any other, where the system would end the process
/// for it; to be called first of all.
pub fn limits_are_errors() {
    ignore_file_size_signal();
}

#[expect(unsafe_code, reason = "signal is a C function")]
fn ignore_file_size_signal() {
    // SAFETY: signal(2) with SIG_IGN installs nothing that could run; write(2) then fails with EFBIG.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// The environment variable that names a file to read memory pressure from, in the format of `/proc/pressure/memory`,
/// instead of asking the system.
pub const PRESSURE_FILE: &str = "TANDEM_PRESSURE_FILE";

/// Returns the platform this build runs on; [`PRESSURE_FILE`] has a say in it.
#[must_use]
pub fn native() -> Arc<dyn Platform> {
    #[cfg(target_os = "linux")]
    let platform = Arc::new(Linux);
    #[cfg(target_os = "macos")]
    let platform = Arc::new(MacOs);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    compile_error!("Tandem runs on macOS and Linux");
    match std::env::var_os(PRESSURE_FILE).filter(|path| !path.is_empty()) {
        Some(path) => Arc::new(told::ToldByFile {
            platform,
            path: path.into(),
        }),
        None => platform,
    }
}
