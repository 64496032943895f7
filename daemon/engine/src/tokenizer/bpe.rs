//! Byte-level BPE: text is split into words, each word's bytes become characters, and merges join these to tokens.

use tokenizers::Model as _;
use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_level;
use super::error::TokenizerError;
use super::pre::PreTokenizer;
use super::split::split;
use super::vocabulary::Vocabulary;
use crate::TokenId;
use crate::gguf::{Gguf, Strings};

#[derive(Debug)]
pub(super) struct ByteLevelBpe {
    pre: PreTokenizer,
    bpe: BPE,
}

impl ByteLevelBpe {
    pub(super) fn from_gguf(gguf: &Gguf, vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let name = gguf
            .optional_str("tokenizer.ggml.pre")?
            .unwrap_or("default");
        let pre = PreTokenizer::named(name)?;
        let merges = merges(gguf.strings("tokenizer.ggml.merges")?, vocabulary)?;
        // A text that two tokens share stands for the first.
        let ids: Vocab = (vocabulary.iter())
            .filter_map(|(_, text, _)| Some((text.to_owned(), vocabulary.id(text)?)))
            .collect();
        let bpe = BPE::builder()
            .vocab_and_merges(ids, merges)
            .ignore_merges(pre.whole_words)
            // Its cache would live in every thread for good; words are short and merging them is cheap.
            .cache_capacity(0)
            .build()
            .map_err(|e| TokenizerError::Build {
                detail: e.to_string(),
            })?;
        Ok(Self { pre, bpe })
    }

    pub(super) fn adds_bos(&self) -> bool {
        self.pre.adds_bos
    }

    /// Appends the tokens of text. A byte that the vocabulary lacks has no token and is left out, as in training.
    pub(super) fn encode(&self, text: &str, into: &mut Vec<TokenId>) {
        for word in split(&self.pre.stages, text) {
            let word: String = word.bytes().map(byte_level::to_char).collect();
            // Without dropout and unknown token, which we never set, the model cannot fail.
            let tokens = self.bpe.tokenize(&word).unwrap_or_default();
            into.extend(tokens.iter().map(|token| token.id));
        }
    }
}

/// Reads the merges and makes sure that each joins two tokens into a third.
fn merges(
    lines: &Strings,
    vocabulary: &Vocabulary,
) -> Result<Vec<(String, String)>, TokenizerError> {
    let mut merges = Vec::with_capacity(lines.len());
    for (rank, line) in lines.iter().enumerate() {
        let parsed = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.split_once(' '));
        let merge = parsed.filter(|(left, right)| {
            [left, right]
                .iter()
                .all(|part| vocabulary.id(part).is_some())
                && vocabulary.id(&format!("{left}{right}")).is_some()
        });
        let Some((left, right)) = merge else {
            let text = String::from_utf8_lossy(line).into_owned();
            return Err(TokenizerError::BadMerge { rank, text });
        };
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}
