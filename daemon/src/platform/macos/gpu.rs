//! How much memory the GPU recommends to use: `MTLDevice.recommendedMaxWorkingSetSize` of `<Metal/MTLDevice.h>`.
//!
//! By Metal's own C entry and one Objective-C message, so that a build without GPU kernels needs no bindings.
#![expect(unsafe_code, reason = "Metal speaks C and Objective-C")]

use std::ffi::{c_char, c_void};
use std::mem;
use std::sync::OnceLock;

/// `uint64_t` of an object that gets a message without arguments.
type GetU64 = unsafe extern "C" fn(object: *mut c_void, selector: *const c_void) -> u64;

// "In order for the system to provide a default Metal device object, you must link to the Core Graphics framework",
// says the documentation of MTLCreateSystemDefaultDevice to command-line programs.
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

#[link(name = "Metal", kind = "framework")]
unsafe extern "C" {
    fn MTLCreateSystemDefaultDevice() -> *mut c_void;
}

#[link(name = "objc")]
unsafe extern "C" {
    fn sel_registerName(name: *const c_char) -> *const c_void;
    fn objc_msgSend();
    fn objc_release(object: *mut c_void);
}

/// Returns the recommendation in bytes; `None` without a GPU. Asked once: finding the device loads its driver.
pub(super) fn recommended_working_set() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    *BYTES.get_or_init(ask)
}

fn ask() -> Option<u64> {
    // SAFETY: the function takes nothing, and returns null or an object that we own, as `Create` in its name says.
    let device = unsafe { MTLCreateSystemDefaultDevice() };
    if device.is_null() {
        return None;
    }
    // SAFETY: the name is a C string, which the runtime copies.
    let selector = unsafe { sel_registerName(c"recommendedMaxWorkingSetSize".as_ptr()) };
    // SAFETY: <objc/message.h> declares objc_msgSend without arguments and has it "cast to an appropriate function
    // pointer type before being called"; all function pointers have one size.
    let get: GetU64 = unsafe { mem::transmute(objc_msgSend as unsafe extern "C" fn()) };
    // SAFETY: every MTLDevice has had this property, a uint64_t, since macOS 10.12; the device lives until the release
    // below, which gives up the one reference that we own.
    let bytes = unsafe {
        let bytes = get(device, selector);
        objc_release(device);
        bytes
    };
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_recommends_the_same_each_time() {
        let bytes = recommended_working_set();
        assert!(bytes.is_none_or(|bytes| bytes >= 64 << 20), "{bytes:?}");
        assert_eq!(bytes, recommended_working_set());
    }
}
