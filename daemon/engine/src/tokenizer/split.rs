//! Splits text into the words that BPE works on.
//!
//! The published expressions need look-ahead for one rule only: of a run of white space before a word, the last
//! character belongs to the word. We state that rule in code instead. What is left suits an engine that takes linear
//! time on any text, where a backtracking one gives up on long runs and leaves the rest of the text unsplit.

use regex::{Captures, Regex};

use super::error::TokenizerError;

/// One pass over the text. Each match becomes a word; so does each stretch between two matches.
#[derive(Debug)]
pub(super) struct Stage(Regex);

impl Stage {
    /// Builds a pass from an expression. Where its group `run` takes part in a match, and more than one character of
    /// white space is followed by something else, the last character is left to what follows.
    pub(super) fn new(expression: &str) -> Result<Self, TokenizerError> {
        let built = Regex::new(expression);
        built.map(Self).map_err(|e| TokenizerError::Build {
            detail: e.to_string(),
        })
    }

    fn split<'a>(&self, text: &'a str, into: &mut Vec<&'a str>) {
        let mut start = 0;
        while let Some(found) = self.0.captures_at(text, start) {
            let (from, to) = extent(&found, text);
            if to == from {
                break;
            }
            if from > start {
                into.push(&text[start..from]);
            }
            into.push(&text[from..to]);
            start = to;
        }
        if start < text.len() {
            into.push(&text[start..]);
        }
    }
}

fn extent(found: &Captures<'_>, text: &str) -> (usize, usize) {
    let whole = found.get_match();
    if let Some(run) = found.name("run")
        && run.end() < text.len()
        && let Some((last, _)) = run.as_str().char_indices().next_back()
        && last > 0
    {
        return (whole.start(), run.start() + last);
    }
    (whole.start(), whole.end())
}

/// Splits by each pass in turn, the later ones within the words of the earlier ones.
pub(super) fn split<'a>(stages: &[Stage], text: &'a str) -> Vec<&'a str> {
    let mut words = vec![text];
    for stage in stages {
        let mut finer = Vec::with_capacity(words.len());
        for word in words {
            stage.split(word, &mut finer);
        }
        words = finer;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_before_a_word_keeps_its_last_character_for_it() {
        let stages = [Stage::new(r" ?[a-z]+|(?<run>\s+)").unwrap()];
        let words = |text| split(&stages, text);
        assert_eq!(words("a   b"), ["a", "  ", " b"]);
        assert_eq!(words("a \u{3000}b"), ["a", " ", "\u{3000}", "b"]);
        assert_eq!(words("  a  "), [" ", " a", "  "]);
        assert_eq!(words("\n"), ["\n"]);
        assert_eq!(words("a1\n\n1"), ["a", "1", "\n", "\n", "1"]);
        assert_eq!(words(""), Vec::<&str>::new());
    }
}
