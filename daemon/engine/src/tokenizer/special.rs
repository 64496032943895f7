//! Finds special tokens in text.

use aho_corasick::{AhoCorasick, MatchKind};

use super::error::TokenizerError;
use crate::TokenId;

/// A set of token texts to look for; of those that start at one place, the longest wins.
#[derive(Debug)]
pub(super) struct SpecialSet {
    automaton: AhoCorasick,
    ids: Vec<TokenId>,
}

/// A stretch of text, or a special token in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment<'a> {
    Text(&'a str),
    Special(TokenId),
}

impl SpecialSet {
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = (TokenId, &'a str)>,
    ) -> Result<Self, TokenizerError> {
        let (ids, texts): (Vec<TokenId>, Vec<&str>) =
            tokens.filter(|(_, text)| !text.is_empty()).unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&texts)
            .map_err(|e| TokenizerError::Build {
                detail: e.to_string(),
            })?;
        Ok(Self { automaton, ids })
    }

    /// Cuts text at the special tokens; empty stretches are left out.
    pub(super) fn split<'a>(&self, text: &'a str) -> Vec<Fragment<'a>> {
        let mut fragments = Vec::new();
        let mut start = 0;
        for found in self.automaton.find_iter(text) {
            if found.start() > start {
                fragments.push(Fragment::Text(&text[start..found.start()]));
            }
            fragments.push(Fragment::Special(self.ids[found.pattern().as_usize()]));
            start = found.end();
        }
        if start < text.len() {
            fragments.push(Fragment::Text(&text[start..]));
        }
        fragments
    }
}
