//! Tells when something happens to a file's name: in its directory, or to any directory on the way there.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::Places;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Places;
