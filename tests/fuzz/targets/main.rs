//! Hostile input for everything that reads what others wrote: one file for each kind.
//!
//! `.ci/run fuzz` runs each for half a minute; `cargo test` replays the corpus and tries some more.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod config;
mod gguf;
mod managers;
mod prepared;
mod pull;
mod request;
mod template;
mod tokenizer;

/// Counts what each input takes.
#[global_allocator]
static ALLOCATOR: tandem_fuzz::Counting = tandem_fuzz::Counting;

/// Makes a directory in memory, where there is such a place: nothing here has to last.
fn scratch() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    directory.unwrap()
}

/// Returns an error with its causes, as one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
