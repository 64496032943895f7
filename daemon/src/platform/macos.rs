//! macOS, through Mach, sysctl, libdispatch, IOKit and launchd.

mod awake;
mod gpu;
mod inherit;
mod pressure;

use std::ffi::{CStr, c_void};
use std::io;
use std::mem;
use std::os::fd::OwnedFd;

use mach2::kern_return::KERN_SUCCESS;
use mach2::message::mach_msg_type_number_t;
use mach2::task::task_info;
use mach2::task_info::{TASK_VM_INFO, task_info_t, task_vm_info};
use mach2::traps::mach_task_self;
use mach2::vm_types::{integer_t, natural_t};

use super::{KeepAwake, OnPressure, Platform, Pressure, PressureWatch};

/// Asks the kernel.
#[derive(Clone, Copy, Debug)]
pub struct MacOs;

impl Platform for MacOs {
    #[expect(unsafe_code, reason = "task_info is a C function")]
    fn footprint(&self) -> io::Result<u64> {
        let mut info = task_vm_info::default();
        let mut count = (mem::size_of::<task_vm_info>() / mem::size_of::<natural_t>())
            as mach_msg_type_number_t;
        let info_out: task_info_t = (&raw mut info).cast::<integer_t>();
        // SAFETY: task_info(TASK_VM_INFO) writes at most `count` naturals to `info_out`, which is how many `info` has,
        // and both live through the call. `mach_task_self` returns this task's own port, which needs no release.
        let result = unsafe { task_info(mach_task_self(), TASK_VM_INFO, info_out, &raw mut count) };
        // The structure grew over the years; the kernel sets `count` to what it knows and filled.
        let filled = count as usize * mem::size_of::<natural_t>();
        if result == KERN_SUCCESS && filled >= mem::offset_of!(task_vm_info, min_address) {
            Ok(info.phys_footprint)
        } else {
            Err(io::Error::other(format!(
                "task_info(TASK_VM_INFO) returned {result} and {filled} bytes"
            )))
        }
    }

    fn physical_memory(&self) -> io::Result<u64> {
        sysctl_u64(c"hw.memsize")
    }

    fn performance_cores(&self) -> Option<usize> {
        // Machines whose cores are alike have no levels.
        sysctl_u64(c"hw.perflevel0.physicalcpu")
            .or_else(|_| sysctl_u64(c"hw.physicalcpu"))
            .ok()
            .and_then(|cores| usize::try_from(cores).ok())
    }

    fn recommended_working_set(&self) -> Option<u64> {
        gpu::recommended_working_set()
    }

    fn pressure(&self) -> io::Result<Pressure> {
        pressure::level()
    }

    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch> {
        Ok(pressure::watch(on_change))
    }

    #[expect(unsafe_code, reason = "malloc_zone_pressure_relief is a C function")]
    fn give_back(&self) {
        unsafe extern "C" {
            /// `<malloc/malloc.h>`: "Attempt to relieve memory pressure by releasing as much memory as possible. A zero goal
            /// means as much as possible, a null zone all zones"; returns the bytes released.
            fn malloc_zone_pressure_relief(zone: *mut c_void, goal: usize) -> usize;
        }
        // SAFETY: null stands for all zones, and zones lock themselves; only free memory is released.
        unsafe {
            malloc_zone_pressure_relief(std::ptr::null_mut(), 0);
        }
    }

    fn keep_awake(&self) -> KeepAwake {
        awake::keep_awake()
    }
}

/// Takes the listening sockets that launchd has for this process under `name`; none where it has none.
pub(super) fn inherited_sockets(name: &str) -> io::Result<Vec<OwnedFd>> {
    inherit::sockets(name)
}

/// Reads an integer of four or eight bytes.
#[expect(unsafe_code, reason = "sysctlbyname is a C function")]
fn sysctl_u64(name: &CStr) -> io::Result<u64> {
    let mut value = 0u64;
    let mut size = mem::size_of::<u64>();
    // SAFETY: sysctlbyname reads `name` up to its NUL and writes at most `size` bytes to `value`, which has that many;
    // a null new value of length 0 means that nothing is set.
    let result = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            (&raw mut value).cast(),
            &raw mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    // A four-byte integer fills the low half: Apple's machines are little-endian and `value` began as 0.
    if result == 0 {
        Ok(value)
    } else {
        Err(io::Error::last_os_error())
    }
}
