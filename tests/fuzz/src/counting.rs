//! An allocator that knows how much the calling thread holds, and how much it held at most.
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe by its nature; this one passes every call on"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;

/// A thread that holds more gets no more: the process then ends with a message, before the machine is short of memory.
const LIMIT: isize = 2 << 30;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted by thread. What one thread allocates and another frees is counted for both.
#[derive(Debug)]
pub struct Counting;

/// Begins to count what the calling thread takes, from 0: what it gave to other threads, to be freed there, would otherwise
/// add up from input to input until nothing is left for the next.
pub(crate) fn begin() {
    HELD.set(0);
    MOST.set(0);
}

/// Returns the most that the calling thread has held since [`begin`], in bytes.
pub(crate) fn most() -> usize {
    usize::try_from(MOST.get()).unwrap_or(0)
}

/// Counts a change; says whether there is room for it. A thread that ends has no counters left, and is not counted.
fn count(change: isize) -> bool {
    let held = HELD.try_with(|held| {
        held.set(held.get() + change);
        held.get()
    });
    let Ok(held) = held else {
        return true;
    };
    if held > LIMIT && change > 0 {
        let _ = HELD.try_with(|held| held.set(held.get() - change));
        return false;
    }
    let _ = MOST.try_with(|most| most.set(most.get().max(held)));
    true
}

// Sizes of layouts are at most `isize::MAX` by their contract.
fn size(bytes: usize) -> isize {
    bytes as isize
}

// SAFETY: every call goes to the system's allocator with the caller's own arguments, and returns what that returns, or null
// before anything was allocated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(size(layout.size())) {
            return null_mut();
        }
        // SAFETY: the caller's promises about `layout` are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(size(layout.size())) {
            return null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: the block came from the system's allocator, through one of the calls here, with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !count(size(new_size) - size(layout.size())) {
            return null_mut();
        }
        // SAFETY: as for `dealloc`, and the caller promises the rest about `new_size`.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_free_is_not_held_against_the_next_input() {
        // Allocated here and freed elsewhere, input after input, to just under what a thread may hold.
        assert!(count(LIMIT));
        begin();
        assert!(count(100) && count(50) && count(-120));
        assert_eq!(most(), 150);
        assert!(count(LIMIT - 30), "there is room for all of it again");
        assert!(!count(1), "and for no more");
        begin();
    }
}
