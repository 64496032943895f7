//! A small fuzzer for stable Rust: it breaks inputs, watches what that does, and keeps what showed something new.
//!
//! Owns mutation, the corpus, and the limits that no input may pass: no panic, no second of computing, no memory beyond
//! ten times the input. Must not know what is tested: that is `targets/`, one file for each kind of input.
//!
//! An input is kept if its outcome was never seen, or if it reached code that none before it had reached. The latter needs the
//! feature `coverage`: the process reads the compiler's own counters (`-C instrument-coverage` is stable). There are crates for
//! this, but they compile everything anew with flags for sanitizers, and bring more packages than this has functions.
//!
//! Ordinary tests replay the corpus and then try a bounded number of inputs of a fixed seed, in a few seconds together. With
//! `TANDEM_FUZZ_SECONDS` each target runs that long, from `TANDEM_FUZZ_SEED` or a seed of the clock; `TANDEM_FUZZ_KEEP=1` adds
//! what it keeps to the corpus.

mod corpus;
mod counting;
mod coverage;
mod mutate;
mod outcome;
mod random;
mod run;
mod source;
mod watch;

pub use counting::Counting;
pub use random::Random;
pub use run::{TIMES, Target, check};
pub use source::Source;
