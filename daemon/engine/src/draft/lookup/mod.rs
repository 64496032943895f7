//! Looks for what comes next in text that is already there: the request's own, and what its client had before.
//!
//! The longest end of the text so far that occurred earlier is continued as it was then, which costs no forward of any
//! model and is right for long stretches where text is edited, quoted or formatted. Guesses are deterministic and only
//! committed tokens enter, so there is nothing to roll back. A guess decides how fast text comes, never which text: a
//! request with a seed repeats to the byte although the history it met differs.
//!
//! [`Lookup`] is one text, [`History`] what clients had before, [`LookupDrafter`] puts them together. This module must
//! not know models, costs or acceptance: how much of a guess is worth verifying is the policy's business.

mod automaton;
mod drafter;
mod edges;
mod history;
#[cfg(test)]
mod tests;
mod text;

use tandem_model::TokenId;

pub use drafter::LookupDrafter;
pub use history::{History, Reader};
pub use text::{Lookup, MAX_BYTES_PER_TOKEN};

/// A chain of tokens that may come next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guess {
    /// Tokens at the end of the text that are the same before the place it was taken from; 0 without a guess.
    pub match_length: usize,
    /// Whether a long match broke off a moment ago and this goes on beside it, as after a renamed word. That makes a
    /// short match far more likely to hold, so it deserves statistics of its own.
    pub resumed: bool,
    /// The tokens, in order.
    pub tokens: Vec<TokenId>,
}
