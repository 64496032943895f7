//! What becomes of a mapping whose file fails: it is cut short, or its disk cannot be read.
//!
//! The system then sends SIGBUS to whoever touches a page that is gone, which ends a process that has no answer. The answer
//! here is to put zeros in the place of the whole mapping and to note that it is lost. Whoever reads it goes on, with numbers
//! that mean nothing, and whoever owns it looks at the note before anything is made of them.
//!
//! Only faults within the mappings that are watched are answered. All others go to whoever answered before, so that a
//! fault of our own still ends the process.
#![expect(
    unsafe_code,
    reason = "a signal handler, and a mapping that it replaces"
)]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use memmap2::Mmap;

/// A mapping that is watched, until this drops; the mapping has to live as long.
#[derive(Debug)]
pub(crate) struct Watch(&'static Place);

/// Room for one mapping. Places are used again and never freed, because a handler may look at one at any time.
#[derive(Debug)]
struct Place {
    taken: AtomicBool,
    /// The first byte; 0: nothing is watched.
    start: AtomicUsize,
    /// The end of the last page.
    end: AtomicUsize,
    lost: AtomicBool,
    next: AtomicPtr<Place>,
}

static FIRST: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
/// Who answered before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

impl Watch {
    pub(crate) fn of(map: &Mmap) -> Self {
        install();
        let place = free_place();
        place.lost.store(false, Ordering::Relaxed);
        let start = map.as_ptr() as usize;
        let end = start + map.len().next_multiple_of(page_bytes());
        // In this order: a handler that reads the start anew after the end sees whether both belong together.
        place.end.store(end, Ordering::Release);
        place.start.store(start, Ordering::Release);
        Self(place)
    }

    /// Whether a part of the mapping could not be read, so that all of it is zeros now.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
        self.0.taken.store(false, Ordering::Release);
    }
}

fn free_place() -> &'static Place {
    let mut place = FIRST.load(Ordering::Acquire);
    // SAFETY: places are leaked boxes, so every pointer in the list is valid for good.
    while let Some(known) = unsafe { place.as_ref() } {
        if !known.taken.swap(true, Ordering::AcqRel) {
            return known;
        }
        place = known.next.load(Ordering::Acquire);
    }
    let new: &'static Place = Box::leak(Box::new(Place {
        taken: AtomicBool::new(true),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        lost: AtomicBool::new(false),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let link = |first: *mut Place| {
        new.next.store(first, Ordering::Release);
        Some(ptr::from_ref(new).cast_mut())
    };
    let _always = FIRST.fetch_update(Ordering::AcqRel, Ordering::Acquire, link);
    new
}

fn page_bytes() -> usize {
    // SAFETY: sysconf(3) only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(1 << 16)
}

/// Has the handler called, once for the process. Where the system refuses, a fault ends the process as it would without.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut before = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: with a null action, sigaction(2) only writes the present one to `before`, and says whether it did.
        let before = unsafe {
            if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
                return;
            }
            before.assume_init()
        };
        // The handler may be called as soon as it is in place.
        let _first = BEFORE.set(before);
        // SAFETY: all zeros is a valid action, and every field that counts is set below.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
        action.sa_sigaction = handler as libc::sighandler_t;
        // On the stack that the standard library gives each thread for this, where there is one.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: `sa_mask` is a set to be emptied; the handler takes what SA_SIGINFO passes, and does nothing that
        // signal-safety(7) does not allow but mmap(2), which is a bare system call in every C library there is.
        unsafe {
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the system passes a filled structure to a handler with SA_SIGINFO.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // Codes up to 0 are of signals that somebody sent: no address belongs to those.
    let sent = code <= 0;
    if !sent && replace(address) {
        return;
    }
    // Where this returns, the same happens again, and is answered by whoever did before; what was sent has to be sent
    // again. SAFETY: sigaction(2) and raise(3) may be called in a handler; the action was the system's own.
    unsafe {
        if let Some(before) = BEFORE.get() {
            libc::sigaction(signal, ptr::from_ref(before), ptr::null_mut());
        }
        if sent {
            libc::raise(signal);
        }
    }
}

/// Puts zeros in the place of the watched mapping that the address lies in; returns whether there was one, and it worked.
fn replace(address: usize) -> bool {
    let mut place = FIRST.load(Ordering::Acquire);
    // SAFETY: as in `free_place`.
    while let Some(known) = unsafe { place.as_ref() } {
        let start = known.start.load(Ordering::Acquire);
        let end = known.end.load(Ordering::Acquire);
        let same = known.start.load(Ordering::Acquire) == start;
        if same && start != 0 && (start..end).contains(&address) {
            // Before anybody can read a zero.
            known.lost.store(true, Ordering::Release);
            let errno = errno();
            // SAFETY: the range is all of a mapping that its owner keeps while somebody reads it, as the thread does
            // that is interrupted here, so it is replaced by one of the same size, and unmapped like it. Readers have
            // a shared reference to bytes that change, as they do wherever a mapped file changes; they are only
            // numbers, in any order. `errno` is a variable of this thread.
            return unsafe {
                let saved = *errno;
                let zeros = libc::mmap(
                    start as *mut c_void,
                    end - start,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
                    -1,
                    0,
                );
                *errno = saved;
                zeros != libc::MAP_FAILED
            };
        }
        place = known.next.load(Ordering::Acquire);
    }
    false
}

/// Where this thread's `errno` is; a handler leaves it as it was.
fn errno() -> *mut c_int {
    // SAFETY: both only return an address.
    #[cfg(target_os = "linux")]
    return unsafe { libc::__errno_location() };
    #[cfg(target_os = "macos")]
    return unsafe { libc::__error() };
}
