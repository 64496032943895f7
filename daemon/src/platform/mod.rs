//! What the daemon asks of the operating system; all `unsafe` for it lives here.
//!
//! Owns readings, not decisions: nothing here knows what a budget is.

use std::fmt::Debug;
use std::io;

mod fake;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

pub use fake::FakePlatform;
#[cfg(target_os = "linux")]
pub use linux::Linux;
#[cfg(target_os = "macos")]
pub use macos::MacOs;

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
}

/// Returns the platform this build runs on.
#[must_use]
pub fn native() -> Box<dyn Platform> {
    #[cfg(target_os = "linux")]
    return Box::new(Linux);
    #[cfg(target_os = "macos")]
    return Box::new(MacOs);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    compile_error!("Tandem runs on macOS and Linux");
}
