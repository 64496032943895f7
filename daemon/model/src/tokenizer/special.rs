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

    /// Cuts text at the special tokens; empty stretches are left out. One piece at a time: a text can be all special
    /// tokens.
    pub(super) fn split<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Fragment<'a>> {
        let mut found = self.automaton.find_iter(text);
        let mut start = 0;
        let mut waiting = None;
        std::iter::from_fn(move || {
            if let Some(special) = waiting.take() {
                return Some(special);
            }
            let Some(next) = found.next() else {
                let rest = &text[start..];
                start = text.len();
                return (!rest.is_empty()).then_some(Fragment::Text(rest));
            };
            let before = &text[start..next.start()];
            start = next.end();
            let special = Fragment::Special(self.ids[next.pattern().as_usize()]);
            if before.is_empty() {
                return Some(special);
            }
            waiting = Some(special);
            Some(Fragment::Text(before))
        })
    }
}

/// The texts that only templates may write, to look for in what was typed.
#[derive(Debug)]
pub(crate) struct Controls {
    texts: Vec<String>,
    /// Finds all of them, also where they overlap.
    automaton: AhoCorasick,
    longest: usize,
}

impl Controls {
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Self, TokenizerError> {
        let texts: Vec<String> = texts
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&texts)
            .map_err(|e| TokenizerError::Build {
                detail: e.to_string(),
            })?;
        let longest = texts.iter().map(String::len).max().unwrap_or(0);
        Ok(Self {
            texts,
            automaton,
            longest,
        })
    }

    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(String::as_str)
    }

    /// Length of the longest, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Where any of them begins in a text, in ascending order.
    pub(crate) fn starts_in(&self, text: &str) -> Vec<usize> {
        let found = self.automaton.find_overlapping_iter(text);
        let mut starts: Vec<usize> = found.map(|found| found.start()).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}
