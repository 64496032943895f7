//! An assertion against idle sleep: `<IOKit/pwr_mgt/IOPMLib.h>`, `kIOPMAssertionTypePreventUserIdleSystemSleep`. The
//! display may sleep, and closing the lid still counts.
#![expect(unsafe_code, reason = "IOKit and Core Foundation are C libraries")]

use std::ffi::{CStr, c_char, c_void};

use crate::platform::KeepAwake;

type CFStringRef = *const c_void;

/// `kIOPMAssertionTypePreventUserIdleSystemSleep`.
const TYPE: &CStr = c"PreventUserIdleSystemSleep";
/// What `pmset -g assertions` shows.
const NAME: &CStr = c"tandem is generating";
/// `kIOPMAssertionLevelOn`.
const LEVEL_ON: u32 = 255;
/// `kCFStringEncodingUTF8`.
const UTF8: u32 = 0x0800_0100;
/// `kIOReturnSuccess`.
const SUCCESS: i32 = 0;

#[link(name = "CoreFoundation", kind = "framework")]
unsafe extern "C" {
    fn CFStringCreateWithCString(
        allocator: *const c_void,
        text: *const c_char,
        encoding: u32,
    ) -> CFStringRef;
    fn CFRelease(object: *const c_void);
}

#[link(name = "IOKit", kind = "framework")]
unsafe extern "C" {
    fn IOPMAssertionCreateWithName(
        assertion_type: CFStringRef,
        level: u32,
        name: CFStringRef,
        id: *mut u32,
    ) -> i32;
    fn IOPMAssertionRelease(id: u32) -> i32;
}

/// A string that is released when it is dropped.
struct Text(CFStringRef);

impl Text {
    fn new(text: &CStr) -> Option<Self> {
        // SAFETY: a null allocator is the default one; the text is a C string in UTF-8, which is copied.
        let text = unsafe { CFStringCreateWithCString(std::ptr::null(), text.as_ptr(), UTF8) };
        (!text.is_null()).then_some(Self(text))
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // SAFETY: `new` made it, is not null, and nobody else releases it.
        unsafe { CFRelease(self.0) };
    }
}

/// Makes an assertion that lasts until the guard drops.
pub(super) fn keep_awake() -> KeepAwake {
    match create() {
        Ok(id) => KeepAwake::new(move || {
            // SAFETY: the call takes a number, and this one is ours.
            let result = unsafe { IOPMAssertionRelease(id) };
            if result != SUCCESS {
                tracing::warn!(result, "cannot let the system sleep again");
            }
        }),
        Err(result) => {
            tracing::warn!(result, "cannot keep the system awake while generating");
            KeepAwake::none()
        }
    }
}

fn create() -> Result<u32, i32> {
    let (Some(kind), Some(name)) = (Text::new(TYPE), Text::new(NAME)) else {
        return Err(-1);
    };
    let mut id = 0;
    // SAFETY: both strings live through the call, which writes a number to `id`.
    let result = unsafe { IOPMAssertionCreateWithName(kind.0, LEVEL_ON, name.0, &raw mut id) };
    if result == SUCCESS {
        Ok(id)
    } else {
        Err(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_can_be_made_and_released() {
        let id = create().unwrap();
        // SAFETY: as in `keep_awake`.
        assert_eq!(unsafe { IOPMAssertionRelease(id) }, SUCCESS);
    }
}
