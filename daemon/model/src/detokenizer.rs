//! Text that grows token by token: whole characters only, and never the beginning of a stop string.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::TokenId;
use crate::tokenizer::Tokenizer;

/// Turns one sequence's tokens into text as they come.
///
/// The sequence stops at the stop string that is complete first; of those that end at one place, the longest. So the
/// text does not depend on how it is cut into tokens or into steps.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    stop_strings: Vec<String>,
    /// Bytes of a character that is not complete.
    partial: Vec<u8>,
    /// Text that may turn out to begin a stop string.
    held: String,
    /// Takes away the space that encoding puts before the first word.
    strip_space: bool,
    stopped: Option<usize>,
}

/// What one token added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Text that became certain; may be empty.
    pub text: String,
    /// Index of the stop string that ended the text.
    pub stopped: Option<usize>,
}

impl Detokenizer {
    /// Starts a text that nothing precedes. Empty stop strings never match.
    #[must_use]
    pub fn new(tokenizer: Arc<Tokenizer>, stop_strings: Vec<String>) -> Self {
        let strip_space = tokenizer.has_space_prefix();
        Self {
            tokenizer,
            stop_strings,
            partial: Vec::new(),
            held: String::new(),
            strip_space,
            stopped: None,
        }
    }

    /// Continues a prompt that ends with this token: the space before a word is then part of the text, except after a
    /// special token.
    #[must_use]
    pub fn after(mut self, last_of_prompt: TokenId) -> Self {
        self.strip_space &= self.tokenizer.is_special(last_of_prompt);
        self
    }

    /// Adds a token. Special tokens add no text; nothing does once a stop string was found.
    pub fn push(&mut self, token: TokenId) -> Step {
        let mut text = String::new();
        let stopped = self.push_onto(token, &mut text);
        Step { text, stopped }
    }

    /// [`Self::push`] that appends to `text` and returns the index of the stop string that ended it.
    pub fn push_onto(&mut self, token: TokenId, text: &mut String) -> Option<usize> {
        if self.stopped.is_none() && !self.tokenizer.is_special(token) {
            let piece = self.tokenizer.piece(token).unwrap_or_default();
            let piece = match piece.split_first() {
                Some((b' ', rest)) if self.strip_space => rest,
                _ => piece,
            };
            self.strip_space = false;
            let mut partial = std::mem::take(&mut self.partial);
            partial.extend_from_slice(piece);
            let used = self.append_whole_characters(&partial, text);
            partial.drain(..used);
            self.partial = partial;
        }
        self.stopped
    }

    /// Ends the text: returns what was held back, where an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> String {
        if self.stopped.is_some() {
            return String::new();
        }
        let mut text = String::new();
        let rest = std::mem::take(&mut self.partial);
        self.append(&String::from_utf8_lossy(&rest), &mut text);
        text.push_str(&std::mem::take(&mut self.held));
        text
    }

    /// Returns how many of the bytes were whole characters, or can never become one.
    fn append_whole_characters(&mut self, bytes: &[u8], text: &mut String) -> usize {
        let mut used = 0;
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.append(chunk.valid(), text);
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            if invalid.is_empty() || (chunks.peek().is_none() && is_beginning(invalid)) {
                break;
            }
            self.append("\u{fffd}", text);
            used += invalid.len();
        }
        used
    }

    /// Moves what becomes certain with `more` to `text`; nothing after a stop string.
    fn append(&mut self, more: &str, text: &mut String) {
        if self.stopped.is_some() {
            return;
        }
        for letter in more.chars() {
            self.held.push(letter);
            let ended = (self.stop_strings.iter().enumerate())
                .filter(|(_, stop)| !stop.is_empty() && self.held.ends_with(stop.as_str()))
                .min_by_key(|(_, stop)| Reverse(stop.len()));
            if let Some((at, stop)) = ended {
                self.held.truncate(self.held.len() - stop.len());
                self.stopped = Some(at);
                text.push_str(&self.held);
                self.held.clear();
                return;
            }
        }
        let certain = self.held.len() - self.possible_stop_len();
        text.extend(self.held.drain(..certain));
    }

    /// Bytes at the end of the held text that a stop string could begin with.
    fn possible_stop_len(&self) -> usize {
        let overlap = |stop: &String| {
            let ends = stop.char_indices().map(|(at, _)| at).filter(|&at| at > 0);
            ends.filter(|&at| self.held.ends_with(&stop[..at]))
                .max()
                .unwrap_or(0)
        };
        self.stop_strings.iter().map(overlap).max().unwrap_or(0)
    }
}

/// Whether bytes that are no character could become one with more behind them.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|e| e.error_len().is_none())
}
