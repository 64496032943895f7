//! Byte-level BPE: text is split into words, each word's bytes become characters, and merges join these to tokens.

use tokenizers::Model as _;
use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_level;
use super::error::{EncodeError, TokenizerError};
use super::limit::Sink;
use super::pre::PreTokenizer;
use super::split::split;
use super::vocabulary::Vocabulary;
use crate::gguf::{Gguf, Strings};

#[derive(Debug)]
pub(super) struct ByteLevelBpe {
    pre: PreTokenizer,
    bpe: BPE,
    /// Whether the file does not name `pre`.
    guessed: bool,
    /// Bytes that have no token.
    missing: Option<Box<[bool; 256]>>,
    /// Text gets a space in front where it has none, as in some families' training.
    space_prefix: bool,
}

const PRE: &str = "tokenizer.ggml.pre";
/// What llama.cpp takes where a file does not say.
const DEFAULT: &str = "default";

impl ByteLevelBpe {
    pub(super) fn from_gguf(gguf: &Gguf, vocabulary: &Vocabulary) -> Result<Self, TokenizerError> {
        let name = gguf.optional_str(PRE)?;
        let pre = PreTokenizer::named(name.unwrap_or(DEFAULT))?;
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
        Ok(Self {
            pre,
            bpe,
            guessed: name.is_none(),
            missing: byte_level::missing(|letter| vocabulary.id(letter).is_some()),
            space_prefix: gguf
                .optional_bool("tokenizer.ggml.add_space_prefix")?
                .unwrap_or(false),
        })
    }

    pub(super) fn adds_bos(&self) -> bool {
        self.pre.adds_bos
    }

    /// Appends the tokens of text. A byte that the vocabulary lacks has no token and is left out, as in training.
    /// `at_start` where nothing or a special token precedes it.
    pub(super) fn encode(
        &self,
        text: &str,
        at_start: bool,
        into: &mut Sink<'_>,
    ) -> Result<(), EncodeError> {
        // One word more than a copy of the text would be as right, and this is rare.
        let prefixed =
            (self.space_prefix && at_start && !text.starts_with(' ')).then(|| format!(" {text}"));
        let text = prefixed.as_deref().unwrap_or(text);
        split(&self.pre.stages, text, into.word_bytes(), &mut |word| {
            into.begin_word(word.len(), self.weight(word))?;
            let word: String = word.bytes().map(byte_level::to_char).collect();
            // Without dropout and unknown token, which we never set, the model cannot fail.
            let tokens = self.bpe.tokenize(&word).unwrap_or_default();
            into.extend(tokens.iter().map(|token| token.id))
        })
    }

    /// Bytes of a text that are in some token.
    pub(super) fn weight(&self, text: &str) -> usize {
        let Some(missing) = &self.missing else {
            return text.len();
        };
        text.bytes()
            .filter(|byte| !missing[usize::from(*byte)])
            .count()
    }

    /// What was guessed about how text is split, where the file does not say.
    pub(super) fn guess(&self) -> Option<String> {
        self.guessed.then(|| {
            format!(
                "the file does not say how text is split before it becomes tokens (`{PRE}`): the way called `{DEFAULT}` \
                 is used, and if the model was trained with another, its answers are worse than they could be; \
                 choose a newer file of the model"
            )
        })
    }
}

/// Reads the merges and makes sure that each joins two tokens into a third.
fn merges(
    lines: &Strings,
    vocabulary: &Vocabulary,
) -> Result<Vec<(String, String)>, TokenizerError> {
    let mut merges = Vec::with_capacity(lines.len());
    let mut joined = String::new();
    for (rank, line) in lines.iter().enumerate() {
        // A few vocabularies have tokens with spaces in them, so that any space may be the one between the two.
        let line_text = std::str::from_utf8(line).unwrap_or_default();
        let mut cuts = line_text
            .match_indices(' ')
            .map(|(at, _)| (&line_text[..at], &line_text[at + 1..]));
        let merge = cuts.find(|(left, right)| {
            joined.clear();
            joined.extend([*left, *right]);
            [left, right, joined.as_str()]
                .iter()
                .all(|text| vocabulary.id(text).is_some())
        });
        let Some((left, right)) = merge else {
            let text = String::from_utf8_lossy(line).into_owned();
            return Err(TokenizerError::BadMerge { rank, text });
        };
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}
