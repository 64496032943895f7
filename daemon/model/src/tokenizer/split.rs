//! Splits text into the words that BPE works on.
//!
//! The published expressions need look-ahead for one rule only: of a run of white space before a word, the last
//! character belongs to the word. We state that rule in code instead. What is left suits an engine that takes linear
//! time on any text, where a backtracking one gives up on long runs and leaves the rest of the text unsplit.

use regex::Regex;

use super::error::{EncodeError, TokenizerError};

/// One pass over the text. Each match becomes a word; so does each stretch between two matches.
#[derive(Debug)]
pub(super) struct Stage {
    expression: Regex,
    /// Whether it has the group `run`.
    runs: bool,
}

/// What takes the words.
pub(super) type Take<'a, 'f> = dyn FnMut(&'a str) -> Result<(), EncodeError> + 'f;

impl Stage {
    /// Builds a pass from an expression. Where its group `run` takes part in a match, and more than one character of
    /// white space is followed by something else, the last character is left to what follows.
    pub(super) fn new(expression: &str) -> Result<Self, TokenizerError> {
        let built = Regex::new(expression).map_err(|e| TokenizerError::Build {
            detail: e.to_string(),
        })?;
        let runs = built.capture_names().flatten().any(|name| name == "run");
        Ok(Self {
            expression: built,
            runs,
        })
    }

    /// Where the next match ends, and where it begins.
    fn next(
        &self,
        text: &str,
        start: usize,
        word_bytes: usize,
    ) -> Result<Option<(usize, usize)>, EncodeError> {
        let Some(found) = self.expression.find_at(text, start) else {
            return Ok(None);
        };
        let whole = (found.start(), found.end());
        let ends_in_space = found.as_str().ends_with(char::is_whitespace);
        if !self.runs || !ends_in_space || found.end() == text.len() || found.len() == 1 {
            return Ok(Some(whole));
        }
        // What follows takes longer than finding did.
        if found.len() > word_bytes {
            return Err(EncodeError::LongWord {
                bytes: found.len(),
                limit: word_bytes,
            });
        }
        let groups = self.expression.captures_at(text, start);
        if let Some(run) = groups.as_ref().and_then(|groups| groups.name("run"))
            && let Some((last, _)) = run.as_str().char_indices().next_back()
            && last > 0
        {
            return Ok(Some((found.start(), run.start() + last)));
        }
        Ok(Some(whole))
    }
}

/// Splits by each pass in turn, the later ones within the words of the earlier ones, and hands out one word at a time: a
/// text of megabytes has millions of them.
pub(super) fn split<'a>(
    stages: &[Stage],
    text: &'a str,
    word_bytes: usize,
    take: &mut Take<'a, '_>,
) -> Result<(), EncodeError> {
    let Some((stage, later)) = stages.split_first() else {
        return take(text);
    };
    let mut start = 0;
    while let Some((from, to)) = stage.next(text, start, word_bytes)? {
        if to == from {
            break;
        }
        if from > start {
            split(later, &text[start..from], word_bytes, take)?;
        }
        split(later, &text[from..to], word_bytes, take)?;
        start = to;
    }
    if start < text.len() {
        split(later, &text[start..], word_bytes, take)?;
    }
    Ok(())
}

/// All words at once.
#[cfg(test)]
pub(super) fn words<'a>(stages: &[Stage], text: &'a str) -> Vec<&'a str> {
    let mut words = Vec::new();
    let split = split(stages, text, usize::MAX, &mut |word| {
        words.push(word);
        Ok(())
    });
    split.expect("there is no limit");
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_before_a_word_keeps_its_last_character_for_it() {
        let stages = [Stage::new(r" ?[a-z]+|(?<run>\s+)").unwrap()];
        let words = |text| words(&stages, text);
        assert_eq!(words("a   b"), ["a", "  ", " b"]);
        assert_eq!(words("a \u{3000}b"), ["a", " ", "\u{3000}", "b"]);
        assert_eq!(words("  a  "), [" ", " a", "  "]);
        assert_eq!(words("\n"), ["\n"]);
        assert_eq!(words("a1\n\n1"), ["a", "1", "\n", "\n", "1"]);
        assert_eq!(words(""), Vec::<&str>::new());
    }
}
