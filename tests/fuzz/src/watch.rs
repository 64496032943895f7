//! Notices an input that does not end.

use std::path::PathBuf;
use std::process::abort;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// No input takes so long, on any machine, that this is not a hang.
const HANGS: u64 = 120;

/// Ends the process where no beat comes for two minutes; what ran then is in the file.
#[derive(Debug)]
pub(crate) struct Watch {
    beats: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Watch {
    pub(crate) fn start(target: &'static str, file: PathBuf) -> Self {
        let (beats, over) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let watch = Self {
            beats: Arc::clone(&beats),
            over: Arc::clone(&over),
        };
        thread::spawn(move || {
            let (mut last, mut silent) = (0, 0);
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_secs(1));
                let now = beats.load(Ordering::Relaxed);
                silent = if now == last { silent + 1 } else { 0 };
                last = now;
                if silent > HANGS {
                    eprintln!(
                        "fuzz {target}: an input runs for over {HANGS} s; it is in {}",
                        file.display()
                    );
                    abort();
                }
            }
        });
        watch
    }

    pub(crate) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What the calling thread has computed so far, where the system tells; it does not count what others computed meanwhile.
pub(crate) fn computed() -> Option<Duration> {
    // Nanoseconds on a core, then waiting, then the number of turns.
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = text.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}
