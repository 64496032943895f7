//! What a pull reports while it runs. Owns the events; whoever pulls decides how they look.

use std::path::Path;

use crate::FetchError;

/// One thing that happened during a pull.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A source is being asked.
    Source {
        /// The source in words, such as `Hugging Face hub (https://huggingface.co)`.
        name: &'a str,
    },
    /// A source failed and the next one is tried.
    SourceFailed {
        /// The source in words.
        name: &'a str,
        /// What it said.
        error: &'a FetchError,
    },
    /// Another process is pulling the same file; this one waits for it.
    Waiting {
        /// The lock file that the other process holds.
        lock: &'a Path,
    },
    /// Bytes of a file start to arrive.
    Started {
        /// The name of the file.
        file: &'a str,
        /// The size of the whole file in bytes.
        total_bytes: u64,
        /// Bytes that an earlier, interrupted pull left.
        done_bytes: u64,
    },
    /// More bytes have arrived.
    Advanced {
        /// Bytes of the file on this machine by now. It falls when a file has to start afresh.
        done_bytes: u64,
    },
    /// The token was refused, and the same is asked for without it.
    TokenRefused {
        /// What the hub said.
        reason: &'a FetchError,
    },
    /// The hub did not say what there is now, and the file that was fetched earlier is taken.
    Kept {
        /// The file.
        path: &'a Path,
        /// Why it could not be asked for.
        reason: &'a FetchError,
    },
    /// The connection was lost, the server asked for patience, or what was left of an earlier pull was of no use; the pull goes
    /// on.
    Retrying {
        /// What went wrong.
        reason: &'a FetchError,
    },
    /// The file that last started is complete.
    Finished,
}

/// Receives the events of a pull; any closure that takes an [`Event`] will do.
pub trait Progress {
    /// Takes note of one event. It is called on the pulling thread and holds it up while it runs.
    fn event(&mut self, event: Event<'_>);
}

impl<F: FnMut(Event<'_>)> Progress for F {
    fn event(&mut self, event: Event<'_>) {
        self(event);
    }
}
