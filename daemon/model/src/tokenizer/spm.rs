//! SentencePiece's BPE: characters are joined into the pieces with the highest scores; what has no piece becomes bytes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::error::{EncodeError, TokenizerError};
use super::limit::Sink;
use super::vocabulary::{TokenKind, Vocabulary};
use crate::TokenId;
use crate::gguf::Gguf;

/// Stands for a space in the pieces.
const SPACE: char = '▁';

#[derive(Debug)]
pub(super) struct SentencePiece {
    scores: Vec<f32>,
    bytes: Option<Box<[TokenId; 256]>>,
    pub(super) space_prefix: bool,
    /// Whether a piece can reach over the beginning of a word, so that text has to be taken apart as a whole.
    joins_words: bool,
}

/// Where the first word of a text ends: before white space that follows something else.
fn word_end(text: &str) -> usize {
    word_starts(text).next().unwrap_or(text.len())
}

/// Where words begin, except at the very start.
fn word_starts(text: &str) -> impl Iterator<Item = usize> {
    let is_space = |c| matches!(c, ' ' | SPACE);
    let followers = text.char_indices().skip(1).zip(text.chars());
    let starts = followers.filter(move |((_, c), before)| is_space(*c) && !is_space(*before));
    starts.map(|((at, _), _)| at)
}

impl SentencePiece {
    pub(super) fn from_gguf(gguf: &Gguf, vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let key = "tokenizer.ggml.scores";
        let scores = gguf.f32s(key)?;
        if scores.len() != vocabulary.len() {
            let (entries, tokens) = (scores.len(), vocabulary.len());
            return Err(TokenizerError::Lengths {
                key,
                entries,
                tokens,
            });
        }
        if let Some((id, _)) = (0..).zip(&scores).find(|(_, score)| score.is_nan()) {
            return Err(TokenizerError::BadScore { id });
        }
        let mut bytes = Box::new([0; 256]);
        let complete = (0..).zip(bytes.iter_mut()).all(|(byte, slot)| {
            let id = vocabulary.id(&format!("<0x{byte:02X}>"));
            *slot = id.unwrap_or_default();
            id.is_some()
        });
        let space_prefix = gguf
            .optional_bool("tokenizer.ggml.add_space_prefix")?
            .unwrap_or(true);
        Ok(Self {
            scores,
            bytes: complete.then_some(bytes),
            space_prefix,
            // The first piece to reach over one word's beginning would hold just that one.
            joins_words: vocabulary
                .iter()
                .any(|(_, text, _)| word_starts(text).count() == 1),
        })
    }

    /// Appends the tokens of text; `at_start` where nothing or a special token precedes it.
    pub(super) fn encode(
        &self,
        vocabulary: &Vocabulary,
        text: &str,
        at_start: bool,
        into: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        let mut prefix = if self.space_prefix && at_start {
            " "
        } else {
            ""
        };
        let mut rest = text;
        while !(rest.is_empty() && prefix.is_empty()) {
            let cut = if self.joins_words {
                rest.len()
            } else {
                word_end(rest)
            };
            let (word, after) = rest.split_at(cut);
            rest = after;
            into.begin_word(word.len(), word.len())?;
            let word: String = prefix
                .chars()
                .chain(word.chars())
                .map(|c| if c == ' ' { SPACE } else { c })
                .collect();
            prefix = "";
            for piece in self.merge(vocabulary, &word) {
                match vocabulary.id(piece) {
                    Some(id) => into.push(id)?,
                    None => self.encode_raw(vocabulary, piece.as_bytes(), into)?,
                }
            }
        }
        Ok(())
    }

    /// Appends the tokens of bytes that no piece holds: one each, or the unknown token where the vocabulary has no bytes.
    pub(super) fn encode_raw(
        &self,
        vocabulary: &Vocabulary,
        bytes: &[u8],
        into: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        match &self.bytes {
            Some(tokens) => into.extend(bytes.iter().map(|&byte| tokens[usize::from(byte)])),
            None if bytes.is_empty() => Ok(()),
            None => into.extend(vocabulary.unknown),
        }
    }

    /// Joins neighbours, the pair with the highest score first and the leftmost of equals, until no pair is a piece.
    fn merge<'a>(&self, vocabulary: &Vocabulary, text: &'a str) -> Vec<&'a str> {
        let mut symbols: Vec<Symbol> = Vec::with_capacity(text.len());
        for (start, letter) in text.char_indices() {
            let at = symbols.len();
            let end = start + letter.len_utf8();
            symbols.push(Symbol {
                start,
                end,
                before: at.checked_sub(1),
                after: at + 1,
            });
        }
        let mut queue = BinaryHeap::new();
        let pair = |symbols: &[Symbol], left: usize| {
            let right = symbols.get(symbols[left].after)?;
            let (start, end) = (symbols[left].start, right.end);
            let id = vocabulary.id(&text[start..end])?;
            Some(Pair {
                score: self.scores[id as usize],
                left,
                start,
                end,
            })
        };
        queue.extend((0..symbols.len()).filter_map(|left| pair(&symbols, left)));
        while let Some(best) = queue.pop() {
            let left = symbols[best.left];
            let Some(&right) = symbols.get(left.after) else {
                continue;
            };
            // An entry is stale once either side has been joined to something else.
            if left.is_gone() || left.start != best.start || right.end != best.end {
                continue;
            }
            symbols[left.after].end = right.start;
            symbols[best.left].end = right.end;
            symbols[best.left].after = right.after;
            if let Some(next) = symbols.get_mut(right.after) {
                next.before = Some(best.left);
            }
            queue.extend(pair(&symbols, best.left));
            queue.extend(left.before.and_then(|before| pair(&symbols, before)));
        }
        symbols
            .iter()
            .filter(|s| !s.is_gone())
            .map(|s| &text[s.start..s.end])
            .collect()
    }

    /// The bytes of a token.
    pub(super) fn decode(&self, text: &str, kind: TokenKind) -> Vec<u8> {
        if kind == TokenKind::Byte
            && let Some(hex) = text
                .strip_prefix("<0x")
                .and_then(|rest| rest.strip_suffix('>'))
            && let Ok(byte) = u8::from_str_radix(hex, 16)
        {
            return vec![byte];
        }
        text.replace(SPACE, " ").into_bytes()
    }
}

/// A stretch of the text and its neighbours; empty once it was joined to the one before.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    start: usize,
    end: usize,
    before: Option<usize>,
    after: usize,
}

impl Symbol {
    fn is_gone(&self) -> bool {
        self.start == self.end
    }
}

/// Two neighbours that make a piece.
#[derive(Debug)]
struct Pair {
    score: f32,
    left: usize,
    start: usize,
    end: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}
