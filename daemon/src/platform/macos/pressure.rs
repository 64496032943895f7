//! libdispatch's source of memory pressure: `<dispatch/source.h>`, `DISPATCH_SOURCE_TYPE_MEMORYPRESSURE`, and the level
//! of the whole system, `kern.memorystatus_vm_pressure_level`.
#![expect(unsafe_code, reason = "libdispatch is a C library")]

use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

use dispatch2::{
    _dispatch_source_type_memorypressure, DispatchObject, DispatchSource,
    dispatch_source_memorypressure_flags_t as Flags,
};

use super::sysctl_u64;
use crate::platform::{OnPressure, Pressure, PressureWatch};

const NORMAL: u64 = Flags::DISPATCH_MEMORYPRESSURE_NORMAL.0;
const WARN: u64 = Flags::DISPATCH_MEMORYPRESSURE_WARN.0;
const CRITICAL: u64 = Flags::DISPATCH_MEMORYPRESSURE_CRITICAL.0;

/// What the handlers get; theirs alone from activation until the source is cancelled.
struct Context {
    /// Not retained: a source that calls its handler exists.
    source: NonNull<DispatchSource>,
    told: Cell<Pressure>,
    on_change: OnPressure,
}

/// Reads the level of the system.
pub(super) fn level() -> io::Result<Pressure> {
    // The values are those of the source's flags.
    let level = sysctl_u64(c"kern.memorystatus_vm_pressure_level")?;
    parse(level).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the memory pressure level is {level}, which means nothing"),
        )
    })
}

/// Starts a source that calls on a queue of the system, one call after the other.
pub(super) fn watch(on_change: OnPressure) -> PressureWatch {
    let kind = (&raw const _dispatch_source_type_memorypressure).cast_mut();
    let mask = (NORMAL | WARN | CRITICAL) as usize;
    // SAFETY: dispatch_source_create takes one of the constants for the kind; this kind has no handle, which is then 0,
    // and the mask holds flags of this kind. Without a queue, handlers run on the default global one.
    let source = unsafe { DispatchSource::new(kind, 0, mask, None) };
    let context = Box::new(Context {
        source: NonNull::from(&*source),
        told: Cell::new(Pressure::Normal),
        on_change,
    });
    // SAFETY: a context may be any pointer. The handlers, which are set next and get it, know what it points to.
    unsafe { source.set_context(Box::into_raw(context).cast()) };
    source.set_event_handler_f(tell);
    source.set_cancel_handler_f(free);
    source.activate();
    // Handlers do not run after it, but for one that runs already; then the cancel handler does.
    PressureWatch::new(move || source.cancel())
}

extern "C" fn tell(context: *mut c_void) {
    // SAFETY: this is the context that `watch` set. Only `free` drops it, after the last call of this handler, and calls
    // do not overlap: "dispatch sources are not reentrant". So nobody else looks at it meanwhile.
    let context: &Context = unsafe { &*context.cast::<Context>() };
    // SAFETY: the source exists while its handler runs.
    let flags = unsafe { context.source.as_ref() }.data();
    // Events that came while the handler ran are told as one, with the flags of all: then the system knows the last.
    let Some(now) = parse(flags as u64).or_else(|| level().ok()) else {
        return;
    };
    if context.told.replace(now) != now {
        (context.on_change)(now);
    }
}

extern "C" fn free(context: *mut c_void) {
    // SAFETY: `watch` made the context of a box. The cancel handler runs once, after the last event handler.
    drop(unsafe { Box::from_raw(context.cast::<Context>()) });
}

/// Returns the level of exactly one flag.
fn parse(flags: u64) -> Option<Pressure> {
    match flags {
        NORMAL => Some(Pressure::Normal),
        WARN => Some(Pressure::Warn),
        CRITICAL => Some(Pressure::Critical),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flag_is_a_level_and_several_are_none() {
        assert_eq!(parse(1), Some(Pressure::Normal));
        assert_eq!(parse(2), Some(Pressure::Warn));
        assert_eq!(parse(4), Some(Pressure::Critical));
        assert_eq!(parse(1 | 4), None);
        assert_eq!(parse(0), None);
    }

    #[test]
    fn the_system_says_its_level_and_can_be_watched() {
        level().unwrap();
        drop(watch(Box::new(|_| {})));
    }
}
